//! What a program finds when it starts, and what is said when it cannot start.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use cocode_process::{ProcessSpec, ProgramLookup, SpawnError, spawn};

use crate::{PATH, read_all, shell};

fn failure(spec: &ProcessSpec) -> SpawnError {
    match spawn(spec) {
        Ok(child) => panic!("started {child:?}"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let mut spec = ProcessSpec::new("/usr/bin/env");
    spec.env = vec![
        ("GREETING".into(), "good day".into()),
        ("EMPTY".into(), "".into()),
    ];
    let mut child = spawn(&spec).unwrap();
    assert_eq!(read_all(&mut child).await, "EMPTY=\nGREETING=good day\n");
}

#[tokio::test]
async fn the_program_runs_in_the_given_directory() {
    let mut spec = shell("pwd -P");
    spec.cwd = Some(PathBuf::from("/usr"));
    assert_eq!(read_all(&mut spawn(&spec).unwrap()).await, "/usr\n");
}

#[tokio::test]
async fn a_relative_program_is_found_from_the_given_directory() {
    let mut spec = ProcessSpec::new("./env");
    spec.cwd = Some(PathBuf::from("/usr/bin"));
    assert!(spawn(&spec).unwrap().wait().await.success());
}

#[tokio::test]
async fn the_program_is_looked_up_in_its_own_path() {
    let mut spec = shell("exit 0");
    spec.env = vec![("PATH".into(), "/nowhere".into())];
    let error = failure(&spec);
    assert_eq!(error.to_string(), "program `sh` is not in PATH");
    assert!(
        matches!(
            error,
            SpawnError::NotFound {
                lookup: ProgramLookup::SearchPath,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let mut spec = shell("exit 0");
    spec.program = "cocode-no-such-program".into();
    assert_eq!(
        failure(&spec).to_string(),
        "program `cocode-no-such-program` is not in PATH"
    );
    spec.program = "/no/such/program".into();
    let error = failure(&spec);
    assert_eq!(
        error.to_string(),
        "program `/no/such/program` does not exist"
    );
    assert!(
        matches!(
            error,
            SpawnError::NotFound {
                lookup: ProgramLookup::AsGiven,
                ..
            }
        ),
        "{error:?}"
    );
    spec.program = "".into();
    assert!(matches!(failure(&spec), SpawnError::NotFound { .. }));
}

#[tokio::test]
async fn a_missing_working_directory_is_named() {
    let mut spec = shell("exit 0");
    for path in ["/no/such/directory", "/usr/bin/env"] {
        spec.cwd = Some(PathBuf::from(path));
        let error = failure(&spec);
        assert!(
            matches!(error, SpawnError::WorkingDirectory { .. }),
            "{error:?}"
        );
        assert_eq!(
            error.to_string(),
            format!("cannot enter the working directory `{path}`")
        );
        assert!(error.source().is_some());
    }
}

#[tokio::test]
async fn a_file_without_permission_is_not_executable() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let error = failure(&ProcessSpec::new(manifest));
    assert!(
        matches!(error, SpawnError::NotExecutable { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_script_without_its_interpreter_is_not_taken_for_missing() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    let mut spec = ProcessSpec::new("no-interpreter");
    let mut search_path = fixtures.clone().into_os_string();
    search_path.push(":");
    search_path.push(PATH);
    spec.env = vec![("PATH".into(), search_path)];
    let error = failure(&spec);
    let SpawnError::InterpreterMissing { path } = error else {
        panic!("{error:?}")
    };
    assert_eq!(path, fixtures.join("no-interpreter"));
}

// The C library does this, and musl does not.
#[cfg(not(target_env = "musl"))]
#[tokio::test]
async fn a_script_without_an_interpreter_line_is_run_by_the_shell() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    let mut spec = ProcessSpec::new(fixtures.join("no-interpreter-line"));
    spec.args = (0..20_000)
        .map(|number| number.to_string().into())
        .collect();
    let mut child = spawn(&spec).unwrap();
    assert_eq!(read_all(&mut child).await, "20000 arguments\n");
}

#[tokio::test]
async fn the_last_of_two_variables_with_one_name_counts() {
    let mut spec = ProcessSpec::new("/usr/bin/env");
    spec.env = vec![("A".into(), "1".into()), ("A".into(), "2".into())];
    assert_eq!(read_all(&mut spawn(&spec).unwrap()).await, "A=2\n");
}

#[tokio::test]
async fn an_argument_that_cannot_be_passed_on_is_an_error() {
    let mut spec = shell("exit 0");
    spec.args.push("a\0b".into());
    let error = failure(&spec);
    assert!(matches!(error, SpawnError::Process { .. }), "{error:?}");
}

#[test]
fn without_a_runtime_nothing_is_started() {
    assert!(matches!(
        failure(&shell("exit 0")),
        SpawnError::NoRuntime(_)
    ));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_but_the_standard_streams_is_inherited() {
    #[expect(
        unsafe_code,
        reason = "the standard library opens nothing that is inherited"
    )]
    // SAFETY: makes a new descriptor, which nobody else uses.
    let leaked = unsafe { libc::dup(0) };
    assert!(leaked > 2);
    // The shell itself opens no other descriptor, and `echo` is part of it.
    let mut child = spawn(&shell("echo /proc/$$/fd/*")).unwrap();
    let listed = read_all(&mut child).await;
    let shown: Vec<&str> = listed
        .split(['/', ' ', '\n'])
        .filter(|part| is_number(part))
        .collect();
    let pid = child.pid().to_string();
    let descriptors: Vec<&str> = shown.into_iter().filter(|part| *part != pid).collect();
    // The shell reads the directory through one more.
    assert!(
        matches!(descriptors[..], ["0", "1", "2"] | ["0", "1", "2", "3"]),
        "{listed}"
    );
}

#[cfg(target_os = "linux")]
fn is_number(part: &str) -> bool {
    part.parse::<u32>().is_ok()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_program_leads_its_own_process_group_under_its_guard() {
    use crate::system::{group, parent};

    let child = spawn(&shell("sleep 300")).unwrap();
    let guard = parent(child.pid());
    assert_eq!(group(child.pid()), child.pid());
    assert_eq!(group(guard), guard);
    assert_eq!(parent(guard), std::process::id());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_signal_is_blocked_or_ignored_in_the_program() {
    #[expect(unsafe_code, reason = "the standard library cannot ignore a signal")]
    // SAFETY: no test waits for this signal, and no handler is installed.
    unsafe {
        libc::signal(libc::SIGUSR2, libc::SIG_IGN);
    }
    let mut child = spawn(&shell("grep -E '^Sig(Blk|Ign)' /proc/self/status")).unwrap();
    let listed = read_all(&mut child).await;
    let masks: Vec<u64> = listed
        .split_whitespace()
        .filter_map(|word| u64::from_str_radix(word, 16).ok())
        // Signals 32 and 33 belong to the C library, which lets nobody change them.
        .map(|mask| mask & !(0b11 << 31))
        .collect();
    assert_eq!(masks, [0, 0], "{listed}");
}
