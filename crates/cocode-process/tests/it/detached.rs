//! Programs that are let go.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;

use cocode_process::{ProcessSpec, SpawnError, spawn_detached};

use super::shell;

fn said(spec: &ProcessSpec) -> String {
    let mut text = String::new();
    let mut pipe = spawn_detached(spec, None).unwrap();
    pipe.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_detached_program_is_in_a_session_of_its_own_and_nobodys_leader() {
    let script = "read -r pid name state parent group session rest < /proc/$$/stat; \
                  echo $pid $parent $group $session";
    let told = said(&shell(script));
    let ids: Vec<u32> = told
        .split(' ')
        .map(|id| id.trim().parse().unwrap())
        .collect();
    let [pid, parent, group, session] = ids[..] else {
        panic!("{told}");
    };
    let own = std::fs::read_to_string("/proc/self/stat").unwrap();
    let own_session: u32 = own.split(' ').nth(5).unwrap().parse().unwrap();
    assert_ne!(session, own_session);
    assert_eq!(session, group);
    assert_ne!(pid, session, "it could get a terminal");
    assert_ne!(parent, std::process::id());
}

#[test]
fn a_detached_program_has_its_standard_streams_and_nothing_else() {
    // As if whoever started us had left a descriptor open for everybody.
    let file = File::open("/dev/null").unwrap();
    let copy = file.as_fd().try_clone_to_owned().unwrap();
    let told = said(&shell("echo /proc/$$/fd/*; cat"));
    drop(copy);
    let names = told
        .split_whitespace()
        .filter_map(|path| path.rsplit('/').next());
    // The shell itself may hold one more, for the directory.
    let names: Vec<u32> = names.map(|name| name.parse().unwrap()).collect();
    assert!(names.starts_with(&[0, 1, 2]), "{told}");
    assert!(names.len() <= 4, "{told}");
}

#[test]
fn what_it_writes_to_stderr_goes_to_the_given_file() {
    let path = std::env::temp_dir().join(format!("cocode-detached-{}", std::process::id()));
    let file = File::create(&path).unwrap();
    let mut pipe = spawn_detached(&shell("echo heard >&2"), Some(file)).unwrap();
    pipe.read_to_end(&mut Vec::new()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(text, "heard\n");
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let error = spawn_detached(&ProcessSpec::new("/no/such/program"), None).unwrap_err();
    assert!(matches!(error, SpawnError::NotFound { .. }), "{error}");
}
