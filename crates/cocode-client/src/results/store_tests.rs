//! Stores in directories of their own, alone and many at once.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use cocode_wire::RawJson;
use tempfile::TempDir;

use super::{
    DEFAULT_RESULTS_MAX_AGE, Purged, ResultHandle, ResultStore, ResultStoreError,
    ResultStoreOptions,
};

fn store(directory: &TempDir, max_bytes: u64) -> ResultStore {
    ResultStore::open(ResultStoreOptions {
        directory: directory.path().join("state/results"),
        max_bytes,
        max_age: DEFAULT_RESULTS_MAX_AGE,
    })
}

fn result(text: &str) -> RawJson {
    RawJson::parse(format!(
        r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#
    ))
    .unwrap()
}

fn file_of(store: &ResultStore, handle: &ResultHandle) -> std::path::PathBuf {
    store.options.directory.join(format!("{handle}.result"))
}

/// Makes a file look as if it had been kept so long ago.
fn age(path: &Path, age: Duration) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_kept_can_be_listed_read_and_removed() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory, 1_000_000);
    assert_eq!(store.list().unwrap(), []);
    let first = store.keep("files", "read", &result("one")).unwrap();
    age(&file_of(&store, &first), Duration::from_mins(1));
    let second = store.keep("git", "log", &result("two")).unwrap();
    let listed = store.clone().list().unwrap();
    let told: Vec<_> = listed
        .iter()
        .map(|kept| (&kept.handle, kept.server.as_str(), kept.tool.as_str()))
        .collect();
    assert_eq!(told, [(&second, "git", "log"), (&first, "files", "read")]);
    let read = store.read(&first).unwrap();
    assert_eq!(read.raw, result("one"));
    assert_eq!(read.text(), "one\n");
    assert_eq!((read.server, read.tool), ("files".into(), "read".into()));
    assert_eq!(read.kept_at, listed[1].kept_at);
    assert!(store.remove(&first).unwrap());
    assert!(!store.remove(&first).unwrap());
    let gone = store.read(&first).unwrap_err();
    assert!(matches!(gone, ResultStoreError::Unknown { .. }), "{gone}");
    assert_eq!(store.list().unwrap().len(), 1);
    assert_eq!(store.clear().unwrap().results, 1);
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn nobody_else_can_read_what_is_kept() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory, 1_000_000);
    let handle = store.keep("files", "read", &result("one")).unwrap();
    let kept_in = store.options.directory.clone();
    assert_eq!(mode(&kept_in), 0o700);
    assert_eq!(mode(&file_of(&store, &handle)), 0o600);
    // A directory that somebody opened is closed again.
    fs::set_permissions(&kept_in, fs::Permissions::from_mode(0o755)).unwrap();
    store.keep("files", "read", &result("two")).unwrap();
    assert_eq!(mode(&kept_in), 0o700);
}

#[test]
fn a_result_comes_back_byte_for_byte() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory, 1_000_000);
    let raw = "{\"b\":1.50,\n \"content\" : [ ], \"a\":123456789012345678901234567890}";
    let raw = RawJson::parse(raw).unwrap();
    let handle = store.keep("odd\n\"server", "tool", &raw).unwrap();
    let read = store.read(&handle).unwrap();
    assert_eq!(read.raw, raw);
    assert_eq!(read.server, "odd\n\"server");
}

#[test]
fn names_of_any_length_can_be_listed() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory, 1_000_000);
    let name = "名".repeat(100_000);
    store.keep(&name, &name, &result("one")).unwrap();
    let listed = store.list().unwrap();
    assert_eq!(listed[0].tool.chars().count(), 200);
}

#[test]
fn a_handle_can_be_given_by_its_beginning_if_no_other_has_the_same() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory, 1_000_000);
    let handle = store.keep("files", "read", &result("one")).unwrap();
    for name in ["rab00000000", "rab00000001", "rac00000000"] {
        let handle: ResultHandle = name.parse().unwrap();
        fs::write(file_of(&store, &handle), "{}\n{}").unwrap();
    }
    store.remove(&handle).unwrap();
    assert_eq!(store.resolve("rac").unwrap().as_str(), "rac00000000");
    assert_eq!(store.resolve("RAC0").unwrap().as_str(), "rac00000000");
    assert_eq!(
        store.resolve("rab00000001").unwrap().as_str(),
        "rab00000001"
    );
    let ambiguous = store.resolve("rab").unwrap_err();
    let ResultStoreError::Ambiguous { handles, .. } = ambiguous else {
        panic!("{ambiguous}");
    };
    let handles: Vec<&str> = handles.iter().map(ResultHandle::as_str).collect();
    assert_eq!(handles, ["rab00000000", "rab00000001"]);
    let unknown = store.resolve("rff").unwrap_err();
    assert!(
        matches!(unknown, ResultStoreError::Unknown { .. }),
        "{unknown}"
    );
    for bad in ["", "r", "../x", "ab", "r*"] {
        let invalid = store.resolve(bad).unwrap_err();
        assert!(
            matches!(invalid, ResultStoreError::Invalid { .. }),
            "{invalid}"
        );
    }
}

#[test]
fn broken_and_foreign_files_harm_nothing() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory, 1_000_000);
    let handle = store.keep("files", "read", &result("one")).unwrap();
    let kept_in = store.options.directory.clone();
    for (name, bytes) in [
        ("r0000000001.result", &b""[..]),
        ("r0000000002.result", b"not json\n{}"),
        ("r0000000003.result", b"{\"server\":\"s\",\"tool\":\"t\"}"),
        (
            "r0000000004.result",
            b"{\"server\":\"s\",\"tool\":\"t\"}\n{",
        ),
        ("r0000000005.result", b"\xff\xfe\0\n\xff"),
        (
            "R000000000A.result",
            b"{\"server\":\"s\",\"tool\":\"t\"}\n{}",
        ),
        ("notes.txt", b"mine"),
        ("r0000000006", b"mine"),
    ] {
        fs::write(kept_in.join(name), bytes).unwrap();
    }
    fs::create_dir(kept_in.join("r0000000007.result")).unwrap();
    symlink("/etc/passwd", kept_in.join("r0000000008.result")).unwrap();
    let listed = store.list().unwrap();
    assert!(listed.iter().any(|kept| kept.handle == handle));
    for number in [1, 2, 3, 4, 5] {
        let handle: ResultHandle = format!("r000000000{number}").parse().unwrap();
        let error = store.read(&handle).unwrap_err();
        assert!(matches!(error, ResultStoreError::Damaged { .. }), "{error}");
    }
    for number in [7, 8] {
        let handle: ResultHandle = format!("r000000000{number}").parse().unwrap();
        let error = store.read(&handle).unwrap_err();
        assert!(matches!(error, ResultStoreError::Unknown { .. }), "{error}");
    }
    store.clear().unwrap();
    assert_eq!(store.list().unwrap(), []);
    for name in ["notes.txt", "r0000000006", "R000000000A.result"] {
        assert!(kept_in.join(name).exists(), "{name}");
    }
    assert!(kept_in.join("r0000000008.result").is_symlink());
}

#[test]
fn the_oldest_go_when_there_is_no_room() {
    let directory = TempDir::new().unwrap();
    let text = "x".repeat(1_000);
    let store = store(&directory, 3_500);
    let mut handles = Vec::new();
    for minutes in [50, 40, 30, 20, 10] {
        let handle = store.keep("files", "read", &result(&text)).unwrap();
        age(&file_of(&store, &handle), Duration::from_mins(minutes));
        handles.push(handle);
    }
    let left: Vec<ResultHandle> = store
        .list()
        .unwrap()
        .into_iter()
        .map(|kept| kept.handle)
        .collect();
    let newest: Vec<ResultHandle> = handles.into_iter().rev().take(3).collect();
    assert_eq!(left, newest);
}

#[test]
fn what_is_just_kept_stays_even_if_clocks_say_that_it_is_the_oldest() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory, 1_500);
    let text = "x".repeat(1_000);
    let future = store.keep("files", "read", &result(&text)).unwrap();
    let file = File::options()
        .write(true)
        .open(file_of(&store, &future))
        .unwrap();
    file.set_modified(SystemTime::now() + Duration::from_hours(1))
        .unwrap();
    let handle = store.keep("files", "read", &result(&text)).unwrap();
    let read = store.read(&handle).unwrap();
    assert_eq!(read.raw, result(&text));
    assert!(store.read(&future).is_err());
}

#[test]
fn a_result_that_alone_exceeds_the_quota_is_refused_and_costs_nothing() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory, 500);
    let handle = store.keep("files", "read", &result("small")).unwrap();
    let refused = store.keep("files", "read", &result(&"x".repeat(1_000)));
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, ResultStoreError::TooLarge { max_bytes: 500, .. }),
        "{refused}"
    );
    assert!(store.read(&handle).is_ok());
}

#[test]
fn what_is_too_old_goes_with_the_next_that_comes_or_when_asked() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory, 1_000_000);
    let old = store.keep("files", "read", &result("old")).unwrap();
    let path = file_of(&store, &old);
    age(&path, DEFAULT_RESULTS_MAX_AGE + Duration::from_mins(1));
    let new = store.keep("files", "read", &result("new")).unwrap();
    assert!(!path.exists());
    age(&file_of(&store, &new), DEFAULT_RESULTS_MAX_AGE / 2);
    assert_eq!(store.purge().unwrap(), Purged::default());
    let path = file_of(&store, &new);
    age(&path, DEFAULT_RESULTS_MAX_AGE * 2);
    let bytes = fs::metadata(&path).unwrap().len();
    assert_eq!(store.purge().unwrap(), Purged { results: 1, bytes });
}

#[test]
fn what_a_process_left_unfinished_is_cleared_away_in_time() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory, 1_000_000);
    store.keep("files", "read", &result("one")).unwrap();
    let kept_in = &store.options.directory;
    let (recent, old) = (
        kept_in.join("r0000000001.unfinished"),
        kept_in.join("r0000000002.unfinished"),
    );
    let foreign = kept_in.join("mine.unfinished");
    for path in [&recent, &old, &foreign] {
        fs::write(path, "half").unwrap();
    }
    age(&old, Duration::from_hours(2));
    age(&foreign, Duration::from_hours(2));
    store.keep("files", "read", &result("two")).unwrap();
    assert!(recent.exists() && foreign.exists() && !old.exists());
    assert_eq!(store.list().unwrap().len(), 2);
}

#[test]
fn many_stores_share_a_directory_and_its_quota() {
    let directory = TempDir::new().unwrap();
    let text = "x".repeat(1_000);
    let max_bytes = 20_000;
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (directory, text) = (&directory, &text);
            scope.spawn(move || {
                let store = store(directory, max_bytes);
                for number in 0..25 {
                    let tool = format!("tool-{writer}-{number}");
                    store.keep("files", &tool, &result(text)).unwrap();
                    for kept in store.list().unwrap() {
                        // It may be removed meanwhile, but never be seen half written.
                        match store.read(&kept.handle) {
                            Ok(read) => assert_eq!(read.raw, result(text)),
                            Err(ResultStoreError::Unknown { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    let store = store(&directory, max_bytes);
    let listed = store.list().unwrap();
    let total: u64 = listed.iter().map(|kept| kept.bytes).sum();
    assert!(!listed.is_empty() && total <= max_bytes, "{total}");
    let names = fs::read_dir(&store.options.directory).unwrap();
    assert_eq!(names.count(), listed.len());
}
