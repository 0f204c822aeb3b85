//! The test's side of a scripted server process: its life, and hearing its log.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::acceptor::Acceptor;
use crate::message::Message;
use crate::programs::program;
use crate::recorder::Recorder;
use crate::script::Script;

/// A command that starts the scripted server, and the record of what all its runs received.
///
/// Keep it alive while the server runs: a server that loses its log ends.
#[derive(Debug)]
pub struct StdioServer {
    program: PathBuf,
    arguments: Vec<String>,
    received: Recorder<Message>,
    runs: Recorder<u32>,
    ends: Recorder<u32>,
    processes: Arc<Processes>,
    _acceptor: Acceptor,
}

/// The runs of the program, which report themselves.
#[derive(Debug, Default)]
struct Processes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last_run: u32,
    /// By run; a process is here until its log ends.
    running: BTreeMap<u32, Pid>,
    /// The script of the next runs, if it is another than they are started with.
    script: Option<String>,
}

impl Script {
    /// Makes the server a program that the test can start, as often as it likes.
    pub fn stdio(&self) -> StdioServer {
        StdioServer::new(self)
    }

    /// The program and arguments that start the server without a record.
    pub fn command(&self) -> (PathBuf, Vec<String>) {
        self.assert_fits_process();
        let script = serde_json::to_string(self).expect("a script is plain data");
        (program().to_owned(), vec!["--script".to_owned(), script])
    }
}

impl StdioServer {
    fn new(script: &Script) -> Self {
        let (received, runs, ends) = (
            Recorder::default(),
            Recorder::default(),
            Recorder::default(),
        );
        let processes = Arc::new(Processes::default());
        let (messages, started, ended) = (received.clone(), runs.clone(), ends.clone());
        let known = Arc::clone(&processes);
        let acceptor = Acceptor::start(move |stream| {
            let mut log = BufReader::new(stream);
            // A server that died here shows in the test that started it.
            let Some(run) = known.welcome(&mut log) else {
                return;
            };
            started.push(run);
            let (messages, known) = (messages.clone(), Arc::clone(&known));
            let ended = ended.clone();
            thread::spawn(move || {
                for line in log.lines().map_while(Result::ok) {
                    let text = serde_json::from_str::<String>(&line).unwrap_or(line);
                    messages.push(Message::parse(run, text));
                }
                known.lock().running.remove(&run);
                ended.push(run);
            });
        });
        let (program, mut arguments) = script.command();
        arguments.extend(["--log".to_owned(), format!("tcp:{}", acceptor.address())]);
        Self {
            program,
            arguments,
            received,
            runs,
            ends,
            processes,
            _acceptor: acceptor,
        }
    }

    /// The program to start.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The arguments to start it with.
    pub fn args(&self) -> &[String] {
        &self.arguments
    }

    /// What the server has received, in all its runs.
    pub fn received(&self) -> &Recorder<Message> {
        &self.received
    }

    /// The runs that have started, numbered from one.
    pub fn runs(&self) -> &Recorder<u32> {
        &self.runs
    }

    /// The runs that have ended.
    pub fn ends(&self) -> &Recorder<u32> {
        &self.ends
    }

    /// The first received message that fits, waiting for it if need be.
    pub async fn wait_for(&self, fits: impl Fn(&Message) -> bool) -> Message {
        self.received.wait_for(fits).await
    }

    /// Kills the processes that run now, as with `kill -9`. The next run starts as usual.
    pub fn kill(&self) {
        self.processes.signal(Signal::KILL);
    }

    /// Lets the next runs follow this script, and kills the processes that run now, if any.
    pub fn restart(&self, script: &Script) {
        script.assert_fits_process();
        let script = serde_json::to_string(script).expect("a script is plain data");
        self.processes.lock().script = Some(script);
        if !self.processes.lock().running.is_empty() {
            self.kill();
        }
    }

    /// Lets the processes that run now stand still: nothing is read or answered.
    pub fn hang(&self) {
        self.processes.signal(Signal::STOP);
        #[cfg(target_os = "linux")]
        for pid in self.processes.lock().running.values() {
            // The signal takes effect a moment later, when the process is next on a processor.
            while !has_stopped(*pid) {
                thread::yield_now();
            }
        }
    }

    /// Lets processes that hang go on.
    pub fn resume(&self) {
        self.processes.signal(Signal::CONT);
    }
}

impl Processes {
    /// Hears who has been started, and says which run it is, and what it is to do if that is
    /// something new.
    fn welcome(&self, log: &mut BufReader<TcpStream>) -> Option<u32> {
        let mut pid = String::new();
        log.read_line(&mut pid).ok()?;
        let pid = Pid::from_raw(pid.trim().parse().ok()?)?;
        let mut state = self.lock();
        state.last_run += 1;
        let run = state.last_run;
        state.running.insert(run, pid);
        let script = state.script.clone().unwrap_or_default();
        drop(state);
        let told = writeln!(log.get_mut(), "{run} {script}");
        if told.is_err() {
            self.lock().running.remove(&run);
        }
        told.is_ok().then_some(run)
    }

    fn signal(&self, signal: Signal) {
        let running = &self.lock().running;
        assert!(!running.is_empty(), "no process runs");
        for pid in running.values() {
            match kill_process(*pid, signal) {
                // One that has just ended by itself is not ours to judge.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => panic!("cannot send a signal to {pid:?}: {error}"),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the process stands still, or has ended.
#[cfg(target_os = "linux")]
fn has_stopped(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    // The state is the first field after the name, which is in parentheses.
    stat.map_or(true, |stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with(['T', 'Z', 'X']))
    })
}
