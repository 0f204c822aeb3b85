//! The readers of `/proc`, on its texts and on the real thing.

use super::*;

#[test]
fn a_command_name_cannot_hide_the_parent() {
    let parse = |stat: &[u8]| {
        Some((
            stat_number::<pid_t>(stat, STAT_PARENT)?,
            stat_number::<pid_t>(stat, STAT_GROUP)?,
        ))
    };
    assert_eq!(parse(b"7 (sh) S 12 34 34 0 -1"), Some((12, 34)));
    assert_eq!(parse(b"7 (a) R 1 (b) S 12 34 34 0 -1"), Some((12, 34)));
    assert_eq!(parse(b"7 (a b c) Z 12 34 34 0 -1"), Some((12, 34)));
    assert_eq!(parse(b"7 (sh) S"), None);
    assert_eq!(parse(b""), None);
}

#[test]
fn directory_entries_are_walked_by_their_length() {
    let mut records = Vec::new();
    for name in ["1", "self", "4194304"] {
        let length = (19 + name.len() + 1).next_multiple_of(8);
        let mut record = vec![0_u8; 16];
        record.extend(u16::try_from(length).unwrap().to_ne_bytes());
        record.push(4);
        record.extend(name.as_bytes());
        record.resize(length, 0);
        records.extend(record);
    }
    let mut names = Vec::new();
    for_each_entry(&records, |name| {
        names.push(String::from_utf8(name.to_vec()).unwrap());
    });
    assert_eq!(names, ["1", "self", "4194304"]);
    let mut pids = Vec::new();
    for_each_entry(&records, |name| pids.extend(parse_pid(name)));
    assert_eq!(pids, [1, 4_194_304]);
}

#[test]
fn broken_directory_entries_end_the_walk() {
    let mut count = 0;
    for_each_entry(&[0; 64], |_| count += 1);
    for_each_entry(&[255; 30], |_| count += 1);
    for_each_entry(&[1; 3], |_| count += 1);
    assert!(count <= 3, "a record without length must still move on");
}

#[test]
fn only_private_writable_memory_without_a_file_counts() {
    let check = |line: &str, expect: Option<(usize, usize)>| {
        assert_eq!(parse_anonymous_mapping(line.as_bytes()), expect, "{line}");
    };
    check("1000-3000 rw-p 00000000 00:00 0 ", Some((0x1000, 0x3000)));
    check(
        "1000-3000 rw-p 00000000 00:00 0                  [heap]",
        Some((0x1000, 0x3000)),
    );
    check(
        "7f00f000-7f010000 rwxp 00000000 00:00 0 [anon:arena]",
        Some((0x7f00_f000, 0x7f01_0000)),
    );
    check(
        "1000-3000 rw-p 00001000 fd:00 1234   /usr/lib/libc.so.6",
        None,
    );
    check("1000-3000 r--p 00000000 00:00 0 ", None);
    check("1000-3000 ---p 00000000 00:00 0 ", None);
    check("1000-3000 rw-s 00000000 00:01 99 /dev/zero (deleted)", None);
    check("1000-3000 rw-p 00000000 00:00 0 [vvar]", None);
    check("", None);
    check("b 00:00 0", None);
}

#[test]
fn the_own_map_holds_a_fresh_allocation() {
    let allocation = vec![1_u8; 8 * 1024 * 1024];
    let address = allocation.as_ptr().addr();
    let mut found = false;
    for_each_anonymous_mapping(|start, end| found |= (start..end).contains(&address));
    assert!(found);
}

#[test]
fn the_own_command_line_is_where_the_system_says() {
    let (start, end) = own_arguments().unwrap();
    let shown = std::fs::read("/proc/self/cmdline").unwrap();
    assert_eq!(end - start, shown.len());
}
