//! That no call is lost between processes, that the file stays small and private, and that nothing
//! which is wrong with it harms anybody.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use cocode_core::{ServerName, ToolName};

use super::counter::{Count, Counts};
use super::{MAX_COUNTED_TOOLS, MAX_WAITING_TOOLS, Usage, UsageError, UsageLog, file};

fn server(name: &str) -> ServerName {
    name.parse().unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

fn counted(directory: &Path, calls: &[(&str, &str)]) {
    let log = UsageLog::open(directory);
    for (name, tool) in calls {
        log.count(&server(name), &ToolName::new(*tool));
    }
    assert!(log.flush(soon()));
}

fn calls(directory: &Path, name: &str, tool: &str) -> u64 {
    let usage = Usage::read(directory).unwrap();
    usage.tool(name, tool).map_or(0, |usage| usage.calls)
}

#[test]
fn calls_add_up_over_handles_and_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("usage");
    assert_eq!(Usage::read(&directory).unwrap(), Usage::default());
    let before = SystemTime::now() - Duration::from_secs(1);
    counted(&directory, &[("a", "x"), ("a", "x"), ("b", "x")]);
    counted(&directory, &[("a", "x"), ("a", "y")]);
    let usage = Usage::read(&directory).unwrap();
    assert_eq!(calls(&directory, "a", "x"), 3);
    assert_eq!((usage.calls_of("a"), usage.calls_of("b")), (4, 1));
    assert_eq!(usage.calls_of("c"), 0);
    assert!(usage.since.unwrap() >= before);
    assert!(usage.tool("a", "y").unwrap().last >= usage.since.unwrap());
    for name in ["calls.json", ".lock"] {
        let mode = fs::metadata(directory.join(name)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{name}");
    }
    let mode = fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    counted(scratch.path(), &[("a", "x"), ("a", "y")]);
                }
            });
        }
    });
    assert_eq!(calls(scratch.path(), "a", "x"), 160);
    assert_eq!(calls(scratch.path(), "a", "y"), 160);
}

#[test]
fn the_last_handle_writes_what_is_left() {
    let scratch = tempfile::tempdir().unwrap();
    let log = UsageLog::open(scratch.path());
    let other = log.clone();
    log.count(&server("a"), &ToolName::new("x"));
    drop(log);
    other.count(&server("a"), &ToolName::new("x"));
    drop(other);
    // The test runner ends a test that waits forever.
    while calls(scratch.path(), "a", "x") < 2 {
        std::thread::yield_now();
    }
}

#[test]
fn a_damaged_file_is_put_aside() {
    for damage in ["", "{", "[]", r#"{"version":1}"#, "\u{0}\u{0}"] {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("calls.json");
        fs::write(&path, damage).unwrap();
        let error = Usage::read(scratch.path()).unwrap_err();
        assert!(matches!(error, UsageError::Damaged { .. }), "{damage:?}");
        counted(scratch.path(), &[("a", "x")]);
        assert_eq!(calls(scratch.path(), "a", "x"), 1, "{damage:?}");
        let aside = fs::read_to_string(scratch.path().join("calls.json.damaged"));
        assert_eq!(aside.unwrap(), damage);
    }
}

#[test]
fn a_file_of_a_newer_version_is_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("calls.json");
    let newer = r#"{"version":2,"calls":[]}"#;
    fs::write(&path, newer).unwrap();
    counted(scratch.path(), &[("a", "x")]);
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
    let error = Usage::read(scratch.path()).unwrap_err();
    assert!(matches!(error, UsageError::Newer { .. }));
}

#[test]
fn a_place_that_cannot_be_written_harms_nobody() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("usage");
    fs::write(&directory, "a file").unwrap();
    let log = UsageLog::open(&directory);
    log.count(&server("a"), &ToolName::new("x"));
    assert!(log.flush(soon()));
    fs::remove_file(&directory).unwrap();
    log.count(&server("a"), &ToolName::new("x"));
    assert!(log.flush(soon()));
    assert_eq!(calls(&directory, "a", "x"), 2, "what waited is not lost");
}

#[test]
fn what_was_called_last_is_kept() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let many = u64::try_from(MAX_COUNTED_TOOLS).unwrap() + 10;
    let tools = (0..many).map(|number| {
        let (calls, last) = (1, at(1_000 + number));
        (
            ToolName::new(format!("tool{number}")),
            Count { calls, last },
        )
    });
    let counts = Counts::from([(server("a"), tools.collect())]);
    file::add(scratch.path(), &counts).unwrap();
    let usage = Usage::read(scratch.path()).unwrap();
    let kept = &usage.servers["a"];
    assert_eq!(kept.len(), MAX_COUNTED_TOOLS);
    assert!(!kept.contains_key("tool9") && kept.contains_key("tool10"));
    assert_eq!(usage.since, Some(at(1_000)));
}

#[test]
fn memory_is_bounded_and_odd_names_are_not_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let log = UsageLog::open(scratch.path());
    log.count(&server("a"), &ToolName::new("x".repeat(257)));
    log.count(&server("a"), &ToolName::new("x\ny"));
    log.count(&server("a"), &ToolName::new("é"));
    assert!(log.flush(soon()));
    let usage = Usage::read(scratch.path()).unwrap();
    assert_eq!(usage.servers["a"].len(), 1);
    let counter = super::Counter::default();
    let now = SystemTime::now();
    for number in 0..MAX_WAITING_TOOLS + 10 {
        counter.count(&server("a"), &ToolName::new(number.to_string()), now);
    }
    counter.close();
    let batch = counter.next(Duration::ZERO).unwrap();
    assert_eq!(batch.counts[&server("a")].len(), MAX_WAITING_TOOLS);
}

#[test]
fn switched_off_nothing_is_made() {
    let log = UsageLog::off();
    assert!(log.is_off());
    log.count(&server("a"), &ToolName::new("x"));
    assert!(log.flush(Instant::now()));
}
