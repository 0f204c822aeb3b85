//! A command that does not end by itself.

use std::fs;
use std::path::Path;
use std::time::Duration;

use cocode_auth::{CommandError, SecretError};

use crate::references::{references, resolve, settings};
use crate::{fresh_directory, shown};

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed_with_all_it_started() {
    let directory = fresh_directory("slow");
    fs::create_dir_all(&directory).unwrap();
    let line = "cmd:trap '' TERM; echo hunter2; echo waiting for hunter2 >&2; sleep 300 & \
                echo $$ $! > pids.new; mv pids.new pids; wait; sleep 300";
    // On a busy machine a command may be killed before it has come to wait, so it gets more time.
    for seconds in [1, 2, 4, 8, 16] {
        let mut settings = settings();
        settings.directory = Some(directory.clone());
        settings.limit = Duration::from_secs(seconds);
        let references = references(&directory, settings);
        let error = resolve(&references, line).await.unwrap_err();
        assert!(!shown(&error).contains("hunter2"), "{}", shown(&error));
        let SecretError::Command {
            source: CommandError::TimedOut { stderr, .. },
            ..
        } = &error
        else {
            panic!("{error:?}");
        };
        let Ok(pids) = fs::read_to_string(directory.join("pids")) else {
            continue;
        };
        assert_eq!(stderr, &["waiting for …"]);
        assert_eq!(pids.split_whitespace().count(), 2);
        for pid in pids.split_whitespace() {
            assert!(!Path::new("/proc").join(pid).exists(), "{pid} is alive");
        }
        return;
    }
    panic!("the command never came to wait");
}
