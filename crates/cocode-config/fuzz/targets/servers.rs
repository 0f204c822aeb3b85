//! Files with servers, in TOML and JSON: whatever they hold, loading ends with servers and problems.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use cocode_config::{Config, Places, entry_from_json};
use libfuzzer_sys::fuzz_target;

static ROOM: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    directory.expect("there is room for files").keep()
});

fuzz_target!(|bytes: &[u8]| {
    for name in ["f.toml", "f.json"] {
        let file = ROOM.join(name);
        fs::write(&file, bytes).expect("the file can be written");
        let places = Places {
            system: ROOM.join("system"),
            user: ROOM.join("user"),
            state: ROOM.join("state"),
            directory: None,
            explicit: vec![file.clone()],
        };
        let config = Config::load(&places, &|name| (name == "A").then(|| "a".to_owned()));
        for problem in config.all_problems() {
            assert_eq!(*problem.origin.file, *file);
            assert!(!problem.to_string().contains('\u{1b}'));
        }
        for server in config.servers.values() {
            assert!(!server.winner.found.entry.summary().contains('\u{1b}'));
            assert_eq!(server.winner.found.entry.content_hash().len(), 64);
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _entry = entry_from_json("s", text);
    }
});
