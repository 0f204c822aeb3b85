//! Many editors of one file at once, as threads and as processes: nothing is lost.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use cocode_config::{EditContext, Entry, Format, IfExists, add_server, remove_server, set_enabled};

const N_THREADS: usize = 64;
const N_PROCESSES: usize = 6;
const N_ADDS: usize = 8;
/// Where a process that was started by a test works, and under which name.
const DIRECTORY_VARIABLE: &str = "COCODE_TEST_EDIT_DIRECTORY";
const WORKER_VARIABLE: &str = "COCODE_TEST_EDIT_WORKER";

fn context(directory: &Path) -> EditContext {
    let mut context = EditContext::new(directory.join("locks"));
    // The machine may be busy with much else.
    context.lock_wait = Duration::from_mins(2);
    context
}

fn entry(command: &str) -> Entry {
    Entry {
        command: Some(command.to_owned()),
        ..Entry::default()
    }
}

fn add(directory: &Path, format: Format, name: &str) {
    let file = file(directory, format);
    let context = context(directory);
    add_server(&context, &file, format, name, &entry(name), IfExists::Fail).unwrap();
}

fn file(directory: &Path, format: Format) -> PathBuf {
    directory.join(match format {
        Format::Toml => "mcp.toml",
        Format::Json => ".mcp.json",
    })
}

/// The names in a file that was written by one `command` for each.
fn names(directory: &Path, format: Format) -> BTreeSet<String> {
    let text = fs::read_to_string(file(directory, format)).unwrap();
    let commands = text.lines().filter(|line| line.contains("command"));
    let name = |line: &str| line.split('"').rev().nth(1).unwrap().to_owned();
    commands.map(name).collect()
}

fn leftovers(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "new"))
        .collect()
}

#[test]
fn adds_of_many_threads_are_all_kept() {
    for format in [Format::Toml, Format::Json] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let start = Barrier::new(N_THREADS);
        thread::scope(|scope| {
            for index in 0..N_THREADS {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    add(directory, format, &format!("s{index}"));
                });
            }
        });
        let expected = (0..N_THREADS).map(|index| format!("s{index}")).collect();
        assert_eq!(names(directory, format), expected);
        assert_eq!(leftovers(directory), Vec::<PathBuf>::new());
    }
}

#[test]
fn edits_of_all_kinds_at_once_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for name in ["gone", "off"] {
        add(directory, Format::Toml, name);
    }
    let file = file(directory, Format::Toml);
    let start = Barrier::new(3);
    thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            remove_server(&context(directory), &file, Format::Toml, "gone").unwrap();
        });
        scope.spawn(|| {
            start.wait();
            set_enabled(&context(directory), &file, Format::Toml, "off", false).unwrap();
        });
        scope.spawn(|| {
            start.wait();
            add(directory, Format::Toml, "new");
        });
    });
    let expected = ["new", "off"].map(str::to_owned).into();
    assert_eq!(names(directory, Format::Toml), expected);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("enabled = false"), "{text}");
}

/// Run by itself, this is one process among none. Others start it to be one among many.
#[test]
fn a_process_adds_its_servers() {
    let given = std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from);
    let own = tempfile::tempdir().unwrap();
    let directory = given.as_deref().unwrap_or_else(|| own.path());
    let worker = std::env::var(WORKER_VARIABLE).unwrap_or_else(|_| "0".to_owned());
    let mine: BTreeSet<_> = (0..N_ADDS)
        .map(|index| format!("w{worker}-{index}"))
        .collect();
    for name in &mine {
        add(directory, Format::Toml, name);
    }
    assert!(names(directory, Format::Toml).is_superset(&mine));
}

#[test]
fn adds_of_many_processes_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let children: Vec<_> = (0..N_PROCESSES)
        .map(|worker| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", "concurrent_edits::a_process_adds_its_servers"])
                .env(DIRECTORY_VARIABLE, directory)
                .env(WORKER_VARIABLE, worker.to_string());
            command.stdout(std::process::Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let expected = (0..N_PROCESSES)
        .flat_map(|worker| (0..N_ADDS).map(move |index| format!("w{worker}-{index}")))
        .collect();
    assert_eq!(names(directory, Format::Toml), expected);
    assert_eq!(leftovers(directory), Vec::<PathBuf>::new());
}
