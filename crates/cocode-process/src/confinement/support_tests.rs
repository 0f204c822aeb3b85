//! What is said of systems that cannot confine, or not in full.

use super::{Confinement, Support, prepare};

#[test]
fn nothing_is_prepared_where_the_system_cannot_confine() {
    for (support, said) in [
        (Support::Missing, "no Landlock"),
        (Support::SwitchedOff, "lsm="),
        (Support::Forbidden, "container"),
        (Support::OtherSystem, "on macOS only"),
        (Support::Landlock { abi: 1 }, "version 3 (Linux 6.2)"),
        (Support::Landlock { abi: 2 }, "version 3 (Linux 6.2)"),
    ] {
        assert!(!support.is_sufficient(), "{support}");
        let error = prepare(&Confinement::read_only(), support).expect_err(said);
        let message = error.to_string();
        for word in [said, "Nothing was started", "danger-full-access"] {
            assert!(message.contains(word), "{message}");
        }
    }
}

#[test]
fn older_versions_have_gaps_and_the_newest_has_none() {
    let gaps = |abi| Support::Landlock { abi }.gaps().len();
    assert_eq!([3, 4, 5, 6, 7].map(gaps), [2, 2, 1, 0, 0]);
}

#[test]
fn links_in_a_reserved_directory_reserve_what_they_lead_to() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for name in ["config", "dotfiles"] {
        std::fs::create_dir(root.join(name)).unwrap();
    }
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, root.join(name)).unwrap();
    };
    link("../dotfiles/one.toml", "config/config.toml");
    link("two.toml", "dotfiles/one.toml");
    let names = [
        "config",
        "config/config.toml",
        "dotfiles/one.toml",
        "dotfiles/two.toml",
    ];
    let reserved = super::reserved_paths(&root.join("config"));
    assert_eq!(reserved, names.map(|name| root.join(name)));
}
