//! The policy of an organization, and settings. A policy is either used whole or blocks everything.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use cocode_config::{Entry, Policy, SettingsFile, check_entry, read_settings};
use libfuzzer_sys::fuzz_target;

static FILE: LazyLock<std::path::PathBuf> = LazyLock::new(|| {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    directory
        .expect("there is room for files")
        .keep()
        .join("config.toml")
});

fuzz_target!(|text: &str| {
    let policy = Policy::parse(text, Path::new("policy.toml"));
    let entry = Entry {
        command: Some("x".to_owned()),
        ..Entry::default()
    };
    let spec = check_entry("s", &entry, &|_| None).expect("it is a good entry");
    assert!(!policy.is_broken() || !policy.verdict(&spec).is_allowed());
    std::fs::write(&*FILE, text).expect("the file can be written");
    let (settings, _problems) = read_settings(&FILE, SettingsFile::WithServers);
    assert!(settings.is_some());
});
