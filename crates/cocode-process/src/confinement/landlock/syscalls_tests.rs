//! Tests of the classification: no system call is forgotten.

use std::collections::BTreeMap;
use std::ops::Range;

use super::groups;

/// Numbers that no kernel uses any more or yet. From 424 on, all architectures agree.
#[cfg(target_arch = "x86_64")]
const UNUSED: &[Range<u32>] = &[174..175, 177..179, 337..424];
#[cfg(target_arch = "aarch64")]
const UNUSED: &[Range<u32>] = &[244..260, 295..424];
const LAST: u32 = 469;

#[test]
fn every_system_call_is_classified_once_in_every_sandbox() {
    for (network, scoped) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut times: BTreeMap<u32, usize> = BTreeMap::new();
        for call in groups(network, scoped).flat_map(|group| group.calls) {
            *times.entry(*call).or_default() += 1;
        }
        let used = |number: &u32| !UNUSED.iter().any(|unused| unused.contains(number));
        for number in (0..=LAST).filter(used) {
            assert_eq!(times.remove(&number), Some(1), "system call {number}");
        }
        assert!(times.is_empty(), "numbers that no kernel uses: {times:?}");
    }
}
