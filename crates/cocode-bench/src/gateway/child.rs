//! A program in another process, as whoever measures it sees it: where it listens, what it has, what
//! it uses.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Inside, Setup};
use crate::{Failure, usage};

/// A gateway, or anything else that says first where it listens and ends with its standard input.
#[derive(Debug)]
pub(crate) struct Listening {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
    /// From before its start until it said where it listens.
    pub(crate) took: Duration,
}

impl Listening {
    /// The gateway. Its mark tells its process from all others.
    pub(crate) fn gateway(mark: &str, setup: &Setup) -> Result<Self, Failure> {
        let setup = serde_json::to_string(setup)?;
        Self::start(&["serve-gateway", mark, &setup])
    }

    /// This program in one of its roles.
    pub(crate) fn start(words: &[&str]) -> Result<Self, Failure> {
        #[expect(
            clippy::disallowed_methods,
            reason = "what is measured is a process, and no server of ours"
        )]
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let begun = Instant::now();
        let mut child = command.spawn()?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the process has no pipes".into());
        };
        let mut answers = BufReader::new(answers).lines();
        let first = answers.next().ok_or("the process has ended")??;
        let took = begun.elapsed();
        Ok(Self {
            child,
            orders,
            answers,
            address: first.parse()?,
            took,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has at this moment.
    pub(crate) fn inside(&mut self) -> Result<Inside, Failure> {
        self.orders.write_all(b"counts\n")?;
        let line = self.answers.next().ok_or("the gateway has ended")??;
        Ok(serde_json::from_str(&line)?)
    }

    pub(crate) fn resident_kib(&self) -> Result<u64, Failure> {
        usage::resident_kib_of(self.pid())
    }

    pub(crate) fn processor_time(&self) -> Result<Duration, Failure> {
        usage::processor_time_of(self.pid())
    }

    /// Ends it and waits for that.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let Self {
            mut child,
            orders,
            answers,
            address: _,
            took: _,
        } = self;
        drop(orders);
        let status = child.wait()?;
        drop(answers);
        if status.success() {
            return Ok(());
        }
        Err(format!("the process ended with {status}").into())
    }
}
