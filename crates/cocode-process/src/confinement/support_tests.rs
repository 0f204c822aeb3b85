//! What is said of systems that cannot confine, or not in full.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Confinement, Support, prepare};

#[test]
fn nothing_is_prepared_where_the_system_cannot_confine() {
    for (support, said) in [
        (Support::Missing, "no Landlock"),
        (Support::SwitchedOff, "lsm="),
        (Support::Forbidden, "container"),
        (Support::OtherSystem, "on Linux only"),
        (Support::Landlock { abi: 1 }, "version 3 (Linux 6.2)"),
        (Support::Landlock { abi: 2 }, "version 3 (Linux 6.2)"),
    ] {
        assert!(!support.is_sufficient(), "{support}");
        let error = prepare(&Confinement::read_only(), None, support).expect_err(said);
        let message = error.to_string();
        for word in [said, "Nothing was started", "danger-full-access"] {
            assert!(message.contains(word), "{message}");
        }
    }
}

#[test]
fn older_versions_have_gaps_and_the_newest_has_none() {
    let gaps = |abi| Support::Landlock { abi }.gaps().len();
    let without_filter = usize::from(!super::landlock::filters_sockets());
    assert_eq!(gaps(3), 2 + without_filter);
    assert_eq!(gaps(4), 2 + without_filter);
    assert_eq!(gaps(5), 1 + without_filter);
    assert_eq!(gaps(6), without_filter);
    assert_eq!(gaps(7), without_filter);
}

#[test]
fn a_workspace_is_written_together_with_the_places_for_temporary_files() {
    let environment = |value: &str| vec![(OsString::from("TMPDIR"), OsString::from(value))];
    let writable = |value: &str| {
        Confinement::workspace_write(Path::new("/work"), &environment(value)).writable
    };
    let shared = ["/work", "/tmp", "/dev/shm"].map(PathBuf::from);
    assert_eq!(writable("relative"), shared);
    let mut with_own = shared.to_vec();
    with_own.push("/var/own".into());
    assert_eq!(writable("/var/own"), with_own);
}
