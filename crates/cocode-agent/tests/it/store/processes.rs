//! Many processes with one file, some of which are killed.
//!
//! A process is this program again, started for one test that is ignored otherwise. What it is to do
//! is the first line of its input.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use cocode_agent::{Block, ConversationId, Record, SqliteStore, Store as _, StoreError};

use super::{all, asked, begun, store_in};

/// How often a process is killed.
const ROUNDS: usize = 60;
/// A killed process had said at most so many numbers.
const MOST_NUMBERS: u64 = 40;
const N_PROCESSES: usize = 8;
const N_RECORDS: u64 = 50;

/// Another process.
struct Other {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// Starts a process that appends so many records to a conversation.
    #[expect(
        clippy::disallowed_methods,
        reason = "it is to be killed alone, which a guard would not let happen"
    )]
    fn start(directory: &Path, id: &ConversationId, n_records: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::processes::a_process_appends"])
            .args(["--ignored", "--nocapture", "--test-threads=1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{n_records} {id} {}", directory.display()).unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            input,
            output,
        }
    }

    /// What it says next, after a mark: the harness of tests writes as well.
    fn hear(&mut self) -> Option<String> {
        loop {
            let line = self.output.next()?.unwrap();
            if let Some((_, said)) = line.split_once("say: ") {
                return Some(said.to_owned());
            }
        }
    }

    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        // What it had said before is still in the pipe.
        let said = std::iter::from_fn(|| self.hear()).collect();
        self.child.wait().unwrap();
        said
    }

    fn finish(mut self) -> Vec<String> {
        drop(self.input);
        let output = &mut self.output;
        let said = output
            .filter_map(|line| Some(line.unwrap().split_once("say: ")?.1.to_owned()))
            .collect();
        assert!(self.child.wait().unwrap().success());
        said
    }
}

impl Drop for Lost {
    fn drop(&mut self) {}
}
struct Lost;

fn say(what: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "say: {what}").unwrap();
    stdout.flush().unwrap();
}
