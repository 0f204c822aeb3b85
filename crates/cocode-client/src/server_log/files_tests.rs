//! Names of files, and who may rotate them.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::{Identity, LogFiles, Rotation, is_log, lock_file, stem};

#[test]
fn names_of_servers_become_names_of_files_and_never_paths() {
    let check = |server: &str, expected: &str| assert_eq!(stem(server), expected, "{server}");
    check("files", "files");
    check("My-server_2.0", "My-server_2.0");
    check(
        "../../etc/passwd",
        "%2e./../etc/passwd".replace('/', "%2f").as_str(),
    );
    check(".", "%2e");
    check("..", "%2e.");
    check("a b%c", "a%20b%25c");
    check("ü", "%c3%bc");
}

#[test]
fn long_names_are_cut_and_still_differ() {
    let one = stem(&"ü".repeat(60));
    let other = stem(&format!("{}x", "ü".repeat(60)));
    assert_ne!(one, other);
    for stem in [one, other] {
        assert_eq!(stem.len(), 80 + 1 + 32);
    }
}

#[test]
fn only_logs_are_taken_for_logs() {
    for (name, expected) in [
        ("a.log", true),
        ("a.log.1", true),
        ("a.log.12", true),
        ("a.b.log.2", true),
        (".lock", false),
        ("a.log.txt", false),
        ("a.1", false),
        ("log", false),
    ] {
        assert_eq!(is_log(name), expected, "{name}");
    }
}

fn contents(files: &LogFiles) -> Vec<String> {
    let paths = (0..9).map(|number| files.path(number));
    let existing = paths.filter(|path| path.exists());
    existing
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

fn write(files: &LogFiles, text: &str) -> Identity {
    let mut file = files.open_to_add().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    Identity::of(&file.metadata().unwrap())
}

fn files(directory: &Path) -> LogFiles {
    LogFiles::new(directory, "server")
}

#[test]
fn rotation_keeps_as_many_files_as_are_wanted() {
    let scratch = tempfile::tempdir().unwrap();
    let files = files(scratch.path());
    for text in ["1", "2", "3", "4"] {
        let identity = write(&files, text);
        assert_eq!(files.rotate(identity, 4).unwrap(), Rotation::Done);
    }
    let identity = write(&files, "5");
    assert_eq!(contents(&files), ["5", "4", "3", "2"]);
    assert_eq!(files.rotate(identity, 2).unwrap(), Rotation::Done);
    assert_eq!(contents(&files), ["5"]);
    let identity = write(&files, "6");
    assert_eq!(files.rotate(identity, 1).unwrap(), Rotation::Done);
    assert_eq!(contents(&files), [""; 0]);
}

#[test]
fn who_comes_second_does_not_rotate_the_new_file() {
    let scratch = tempfile::tempdir().unwrap();
    let files = files(scratch.path());
    let full = write(&files, "full");
    // Whoever still has the file open keeps its identity from being used again.
    let _open = files.open_to_add().unwrap();
    assert_eq!(files.rotate(full, 3).unwrap(), Rotation::Done);
    write(&files, "new");
    assert_eq!(files.rotate(full, 3).unwrap(), Rotation::Done);
    assert_eq!(contents(&files), ["new", "full"]);
}

#[test]
fn nobody_rotates_while_another_does() {
    let scratch = tempfile::tempdir().unwrap();
    let files = files(scratch.path());
    let full = write(&files, "full");
    let lock = lock_file(scratch.path()).unwrap();
    lock.lock().unwrap();
    assert_eq!(files.rotate(full, 3).unwrap(), Rotation::Busy);
    assert_eq!(contents(&files), ["full"]);
    drop(lock);
    assert_eq!(files.rotate(full, 3).unwrap(), Rotation::Done);
    assert_eq!(files.identity().unwrap(), None);
}
