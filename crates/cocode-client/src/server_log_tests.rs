//! Logs as they are written and read, by one process and by several.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;

use super::queue::{Queue, Record};
use super::{
    LogLimits, LogRecord, LogSource, MAX_QUEUED_LOG_BYTES, MAX_QUEUED_LOG_RECORDS, ServerLogs,
    line, writer,
};

const LIMITS: LogLimits = LogLimits {
    max_bytes_per_file: 1_000_000,
    files: 3,
    max_age: Duration::from_hours(24),
};

struct Fixture {
    scratch: TempDir,
    directory: PathBuf,
    logs: ServerLogs,
}

impl Fixture {
    fn new(limits: LogLimits) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("state/logs");
        let logs = ServerLogs::open(&directory, limits);
        Self {
            scratch,
            directory,
            logs,
        }
    }

    fn write(&self, text: &str) {
        self.logs.server("files").line(LogSource::Stderr, text);
        flush(&self.logs);
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn texts(&self, lines: usize) -> Vec<String> {
        texts(self.logs.tail("files", lines).unwrap().unwrap())
    }
}

/// The test runner ends a test that waits forever.
fn flush(logs: &ServerLogs) {
    assert!(logs.flush(Instant::now() + Duration::from_hours(1)));
}

fn texts(lines: Vec<String>) -> Vec<String> {
    let text = |line: String| LogRecord::parse(&line).unwrap().text.to_owned();
    lines.into_iter().map(text).collect()
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[test]
fn lines_of_all_sources_are_written_with_time_and_source() {
    let fixture = Fixture::new(LIMITS);
    let log = fixture.logs.server("files");
    let before = SystemTime::now() - Duration::from_millis(1);
    log.line(LogSource::State, "starting");
    log.line(LogSource::Stderr, "\x1b[31mred\x1b[0m\nalert");
    log.clone().line(LogSource::Message("warning"), "careful");
    fixture.logs.server("other").line(LogSource::State, "ready");
    flush(&fixture.logs);
    let text = fs::read_to_string(fixture.file("files.log")).unwrap();
    let mut sources = Vec::new();
    for line in text.lines() {
        let record = LogRecord::parse(line).unwrap();
        let time = line::parse_time(record.time).unwrap();
        assert!(before <= time && time <= SystemTime::now());
        sources.push((record.source, record.level, record.text));
    }
    assert_eq!(
        sources,
        [
            ("state", None, "starting"),
            ("stderr", None, "red"),
            ("stderr", None, "alert"),
            ("message", Some("warning"), "careful"),
        ]
    );
    let path = fixture.logs.path("other").unwrap();
    assert!(
        fs::read_to_string(path)
            .unwrap()
            .ends_with(" state ready\n")
    );
}

#[test]
fn files_are_for_their_owner_only() {
    let fixture = Fixture::new(LogLimits {
        max_bytes_per_file: 1,
        ..LIMITS
    });
    fixture.write("one");
    fixture.write("two");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&fixture.directory), 0o700);
    for name in ["files.log", "files.log.1", ".lock"] {
        assert_eq!(mode(&fixture.file(name)), 0o600, "{name}");
    }
}

#[test]
fn nothing_is_made_before_there_is_something_to_write() {
    let fixture = Fixture::new(LIMITS);
    flush(&fixture.logs);
    assert_eq!(fixture.logs.tail("files", 10).unwrap(), None);
    assert_eq!(fixture.logs.clear("files").unwrap(), 0);
    assert!(!fixture.directory.exists());
}

#[test]
fn logs_that_are_off_or_keep_nothing_do_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("logs");
    for limits in [
        LogLimits { files: 0, ..LIMITS },
        LogLimits {
            max_bytes_per_file: 0,
            ..LIMITS
        },
        LogLimits {
            max_age: Duration::ZERO,
            ..LIMITS
        },
    ] {
        let logs = ServerLogs::open(&directory, limits);
        logs.server("files").line(LogSource::State, "unheard");
        flush(&logs);
        assert!(!directory.exists());
        assert_eq!(logs.path("files"), None);
    }
    let off = ServerLogs::off();
    off.server("files").line(LogSource::State, "unheard");
    flush(&off);
    assert_eq!(off.tail("files", 1).unwrap(), None);
    let mut follower = off.follow("files", 1).unwrap();
    assert!(!follower.exists());
    assert_eq!(follower.poll().unwrap(), [""; 0]);
}

#[test]
fn a_full_file_is_put_aside_and_the_oldest_goes() {
    // A line of this text has 24 + 1 + 6 + 1 + 10 + 1 bytes, of which two fit.
    let fixture = Fixture::new(LogLimits {
        max_bytes_per_file: 100,
        ..LIMITS
    });
    for number in 0..9 {
        fixture.write(&format!("{number:010}"));
    }
    let lines = |name: &str| {
        let text = fs::read_to_string(fixture.file(name)).unwrap();
        texts(text.lines().map(str::to_owned).collect())
    };
    assert_eq!(lines("files.log"), ["0000000008"]);
    assert_eq!(lines("files.log.1"), ["0000000006", "0000000007"]);
    assert_eq!(lines("files.log.2"), ["0000000004", "0000000005"]);
    assert!(!fixture.file("files.log.3").exists());
    assert_eq!(fixture.texts(2), ["0000000007", "0000000008"]);
    assert_eq!(fixture.texts(100).len(), 5);
    assert_eq!(fixture.texts(0).len(), 0);
    assert_eq!(fixture.logs.clear("files").unwrap(), 3);
    assert_eq!(fixture.logs.tail("files", 1).unwrap(), None);
    fixture.write("anew");
    assert_eq!(fixture.texts(9), ["anew"]);
}

#[test]
fn a_file_with_old_lines_is_put_aside_and_old_files_go() {
    let fixture = Fixture::new(LIMITS);
    fs::create_dir_all(&fixture.directory).unwrap();
    let now = SystemTime::now();
    let old_line = |age: Duration| format!("{} stderr old\n", line::time(now - age));
    let hours = Duration::from_hours;
    fs::write(fixture.file("files.log"), old_line(hours(9))).unwrap();
    fs::write(fixture.file("young.log"), old_line(hours(1))).unwrap();
    for (name, age) in [
        ("gone.log", 25),
        ("gone.log.1", 25),
        ("kept.log", 23),
        ("x.txt", 99),
    ] {
        let file = File::create(fixture.file(name)).unwrap();
        file.set_modified(now - hours(age)).unwrap();
    }
    fixture.write("new");
    fixture.logs.server("young").line(LogSource::State, "new");
    flush(&fixture.logs);
    // Old files are removed after a batch is told to be written; the next one comes after that.
    fixture.write("newer");
    let mut names: Vec<String> = fs::read_dir(&fixture.directory)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            ".lock",
            "files.log",
            "files.log.1",
            "kept.log",
            "x.txt",
            "young.log"
        ]
    );
    let texts_of = |name: &str| fs::read_to_string(fixture.file(name)).unwrap();
    assert!(texts_of("files.log.1").ends_with(" old\n"));
    assert_eq!(texts_of("young.log").lines().count(), 2);
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let queue = Queue::default();
    let push = |server: &str, text: &str| {
        queue.push(Record {
            server: Arc::from(server),
            at: SystemTime::now(),
            source: "stderr".to_owned(),
            text: line::Text::cut(text),
        });
    };
    for number in 0..MAX_QUEUED_LOG_RECORDS + 7 {
        push("files", &number.to_string());
    }
    push("other", "unlucky");
    queue.close();
    writer::run(&queue, scratch.path().to_owned(), LIMITS);
    let logs = ServerLogs::open(scratch.path(), LIMITS);
    let mut lines = texts(logs.tail("files", 9999).unwrap().unwrap());
    assert_eq!(lines.pop().unwrap(), "7 lines were lost here");
    assert_eq!(lines, numbers(0..MAX_QUEUED_LOG_RECORDS));
    let other = texts(logs.tail("other", 9).unwrap().unwrap());
    assert_eq!(other, ["1 line was lost here"]);
}

#[test]
fn bytes_that_wait_are_bounded_too() {
    let scratch = tempfile::tempdir().unwrap();
    let queue = Queue::default();
    let large = "x".repeat(10_000);
    let n_fit = MAX_QUEUED_LOG_BYTES / large.len();
    for _ in 0..n_fit + 5 {
        queue.push(Record {
            server: Arc::from("files"),
            at: SystemTime::now(),
            source: "stderr".to_owned(),
            text: line::Text::cut(&large),
        });
    }
    queue.close();
    let limits = LogLimits {
        max_bytes_per_file: u64::MAX,
        ..LIMITS
    };
    writer::run(&queue, scratch.path().to_owned(), limits);
    let logs = ServerLogs::open(scratch.path(), limits);
    let lines = texts(logs.tail("files", 9999).unwrap().unwrap());
    assert_eq!(lines.len(), n_fit + 1);
    assert_eq!(lines[n_fit], "5 lines were lost here");
}

#[test]
fn what_could_not_be_written_is_counted_when_it_can_be_again() {
    let fixture = Fixture::new(LIMITS);
    let in_the_way = fixture.scratch.path().join("state");
    fs::write(&in_the_way, "").unwrap();
    fixture.write("one");
    fixture.write("two\nthree");
    fs::remove_file(&in_the_way).unwrap();
    fixture.write("four");
    fixture.write("five");
    assert_eq!(fixture.texts(9), ["3 lines were lost here", "four", "five"]);
}

#[test]
fn a_line_without_end_does_not_swallow_the_next() {
    let fixture = Fixture::new(LIMITS);
    fixture.write("one");
    let path = fixture.file("files.log");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{}", text.trim_end())).unwrap();
    fixture.write("two");
    assert_eq!(fixture.texts(9), ["one", "one", "two"]);
}

#[test]
fn the_writer_ends_with_the_last_handle_and_loses_nothing() {
    let fixture = Fixture::new(LIMITS);
    let Fixture {
        scratch: _scratch,
        directory,
        logs,
    } = fixture;
    let log = logs.server("files");
    for number in 0..1000 {
        log.line(LogSource::Stderr, &number.to_string());
    }
    let queue = Arc::downgrade(&logs.shared.as_ref().unwrap().queue);
    drop(logs);
    log.line(LogSource::Stderr, "1000");
    drop(log);
    // The thread holds the queue for as long as it lives.
    while queue.upgrade().is_some() {
        thread::yield_now();
    }
    let lines = ServerLogs::open(&directory, LIMITS).tail("files", 9999);
    assert_eq!(texts(lines.unwrap().unwrap()), numbers(0..1001));
}

#[test]
fn several_writers_that_rotate_at_once_lose_nothing() {
    const WRITERS: usize = 4;
    const LINES: usize = 300;
    let limits = LogLimits {
        max_bytes_per_file: 2000,
        files: 90,
        ..LIMITS
    };
    let fixture = Fixture::new(limits);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let logs = ServerLogs::open(&fixture.directory, limits);
            scope.spawn(move || {
                let log = logs.server("files");
                for number in 0..LINES {
                    log.line(LogSource::Stderr, &format!("{writer} {number}"));
                    if number % 7 == 0 {
                        flush(&logs);
                    }
                }
                flush(&logs);
            });
        }
    });
    assert!(fixture.file("files.log.10").exists());
    let lines = fixture.texts(usize::MAX);
    assert_eq!(lines.len(), WRITERS * LINES);
    for writer in 0..WRITERS {
        let prefix = format!("{writer} ");
        let own = lines.iter().filter_map(|line| line.strip_prefix(&prefix));
        let own: Vec<&str> = own.collect();
        assert_eq!(own, numbers(0..LINES));
    }
}

#[test]
fn a_follower_begins_with_the_last_lines_and_goes_on_through_rotations() {
    let fixture = Fixture::new(LogLimits {
        max_bytes_per_file: 100,
        files: 20,
        ..LIMITS
    });
    for number in 0..5 {
        fixture.write(&number.to_string());
    }
    let mut follower = fixture.logs.follow("files", 3).unwrap();
    assert!(follower.exists());
    assert_eq!(texts(follower.poll().unwrap()), numbers(2..5));
    assert_eq!(follower.poll().unwrap(), [""; 0]);
    let mut seen = Vec::new();
    let mut next = 5;
    // Between two looks, the log is rotated never, once, and many times.
    for n_lines in [1, 1, 1, 2, 3, 10, 0, 20, 1] {
        for number in next..next + n_lines {
            fixture.write(&number.to_string());
        }
        next += n_lines;
        seen.extend(texts(follower.poll().unwrap()));
    }
    assert_eq!(seen, numbers(5..next));
}

#[test]
fn a_follower_survives_that_the_log_is_emptied_removed_or_not_there_yet() {
    let fixture = Fixture::new(LIMITS);
    let mut follower = fixture.logs.follow("files", 10).unwrap();
    assert!(!follower.exists());
    assert_eq!(follower.poll().unwrap(), [""; 0]);
    fixture.write("first");
    assert_eq!(texts(follower.poll().unwrap()), ["first"]);
    assert!(follower.exists());
    let file = File::options().write(true).open(fixture.file("files.log"));
    file.unwrap().set_len(0).unwrap();
    assert_eq!(follower.poll().unwrap(), [""; 0]);
    fixture.write("second");
    assert_eq!(texts(follower.poll().unwrap()), ["second"]);
    fixture.logs.clear("files").unwrap();
    assert_eq!(follower.poll().unwrap(), [""; 0]);
    fixture.write("third");
    assert_eq!(texts(follower.poll().unwrap()), ["third"]);
    fixture.logs.clear("files").unwrap();
    fixture.write("fourth");
    assert_eq!(texts(follower.poll().unwrap()), ["fourth"]);
}

#[test]
fn a_follower_yields_whole_lines_and_what_came_late_to_a_file_put_aside() {
    let fixture = Fixture::new(LIMITS);
    fixture.write("one");
    let mut follower = fixture.logs.follow("files", 0).unwrap();
    let path = fixture.file("files.log");
    let line = fs::read_to_string(&path).unwrap();
    let (beginning, end) = line.split_at(30);
    let mut late = File::options().append(true).open(&path).unwrap();
    std::io::Write::write_all(&mut late, beginning.as_bytes()).unwrap();
    assert_eq!(follower.poll().unwrap(), [""; 0]);
    std::io::Write::write_all(&mut late, end.as_bytes()).unwrap();
    assert_eq!(texts(follower.poll().unwrap()), ["one"]);
    fs::rename(&path, fixture.file("files.log.1")).unwrap();
    fixture.write("two");
    assert_eq!(texts(follower.poll().unwrap()), ["two"]);
    std::io::Write::write_all(&mut late, line.as_bytes()).unwrap();
    assert_eq!(texts(follower.poll().unwrap()), ["one"]);
    assert_eq!(follower.poll().unwrap(), [""; 0]);
}

#[test]
fn a_follower_reads_nothing_twice_when_only_the_current_file_is_removed() {
    let fixture = Fixture::new(LogLimits {
        max_bytes_per_file: 1,
        ..LIMITS
    });
    for text in ["one", "two", "three"] {
        fixture.write(text);
    }
    let mut follower = fixture.logs.follow("files", 1).unwrap();
    assert_eq!(texts(follower.poll().unwrap()), ["three"]);
    for text in ["four", "five"] {
        fs::remove_file(fixture.file("files.log")).unwrap();
        assert_eq!(follower.poll().unwrap(), [""; 0]);
        fixture.write(text);
        assert_eq!(texts(follower.poll().unwrap()), [text]);
    }
    fs::remove_file(fixture.file("files.log")).unwrap();
    fixture.write("six");
    assert_eq!(texts(follower.poll().unwrap()), ["six"]);
}

#[test]
fn a_long_log_is_read_in_pieces() {
    let fixture = Fixture::new(LIMITS);
    fs::create_dir_all(&fixture.directory).unwrap();
    let line = |number: usize| format!("{} stderr {number}\n", line::time(SystemTime::now()));
    let text: String = (0..40_000).map(line).collect();
    fs::write(fixture.file("files.log"), &text).unwrap();
    let expected = numbers(0..40_000);
    assert_eq!(fixture.texts(5000), expected[35_000..]);
    assert_eq!(fixture.texts(usize::MAX), expected);
    let mut follower = fixture.logs.follow("files", 0).unwrap();
    fs::rename(fixture.file("files.log"), fixture.file("files.log.1")).unwrap();
    fs::write(fixture.file("files.log"), &text).unwrap();
    let mut seen = Vec::new();
    let mut n_looks = 0;
    loop {
        let lines = follower.poll().unwrap();
        if lines.is_empty() {
            break;
        }
        n_looks += 1;
        seen.extend(texts(lines));
    }
    assert!(n_looks > 1);
    assert_eq!(seen, expected);
}
