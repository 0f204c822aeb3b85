//! What is kept and what is given back, as arithmetic.

use super::*;

fn gaps(start: usize, end: usize, needed: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut gaps = Vec::new();
    for_each_gap(start, end, needed, |from, to| gaps.push((from, to)));
    gaps
}

#[test]
fn needed_ranges_are_cut_out_of_a_mapping() {
    assert_eq!(gaps(10, 20, &[]), [(10, 20)]);
    assert_eq!(gaps(10, 20, &[(0, 10), (20, 30)]), [(10, 20)]);
    assert_eq!(
        gaps(10, 20, &[(17, 18), (12, 14)]),
        [(10, 12), (14, 17), (18, 20)]
    );
    assert_eq!(gaps(10, 20, &[(12, 16), (14, 18)]), [(10, 12), (18, 20)]);
    assert_eq!(gaps(10, 20, &[(5, 12), (18, 25)]), [(12, 18)]);
    assert_eq!(gaps(10, 20, &[(0, 100)]), []);
    assert_eq!(gaps(10, 20, &[(12, 13), (11, 19)]), [(10, 11), (19, 20)]);
}

#[test]
fn ranges_grow_to_whole_pages() {
    let mut ranges = Ranges::<1>::new();
    ranges.push(0x1fff, 0x3001, 0x1000);
    assert_eq!(ranges.as_slice(), [(0x1000, 0x4000)]);
    assert!(!ranges.overflowed);
    ranges.push(1, 2, 0x1000);
    assert!(ranges.overflowed);
}

#[test]
fn the_data_of_the_own_program_is_known() {
    static mut CHANGEABLE: [u8; 5000] = [1; 5000];
    let address = (&raw const CHANGEABLE).addr();
    let layout = Layout::capture();
    assert!(!layout.segments.overflowed);
    let covered = |(from, to): &(usize, usize)| (*from..*to).contains(&address);
    assert!(layout.segments.as_slice().iter().any(covered), "{layout:?}");
}
