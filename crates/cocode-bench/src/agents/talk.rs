//! A conversation with a server on its pipes, by hand: one question after the other, each with a deadline.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout_at;

use crate::{Failure, usage};

/// How long a program may take to start: as long as nobody gives up on a machine that is busy.
const STARTS_WITHIN: Duration = Duration::from_mins(1);
/// How long a server may take to end by itself when its input has ended.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// A server that has been started and greeted.
#[derive(Debug)]
pub(crate) struct Talk {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    n_asked: u64,
}

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Result,
    /// An error is an answer as well.
    Error,
    /// Nothing before the deadline.
    None,
}

impl Answer {
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Self::Result => "a result",
            Self::Error => "an error",
            Self::None => "no answer",
        }
    }
}

/// Memory of a program and all that it has started, in MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) resident: f64,
    /// With only a share of the pages that others have as well.
    pub(crate) proportional: f64,
}

impl Talk {
    /// Starts a server, and says how long it took from nothing until `initialize` was answered.
    pub(crate) async fn start(command: &mut Command) -> Result<(Self, Duration), Failure> {
        let begun = Instant::now();
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server has no pipes".into());
        };
        let mut talk = Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
            n_asked: 0,
        };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "cocode-bench", "version": "1" },
        });
        let answer = talk.ask("initialize", &params, STARTS_WITHIN).await?;
        let time = begun.elapsed();
        if answer != Answer::Result {
            return Err(format!("`initialize` got {}", answer.shown()).into());
        }
        talk.tell("notifications/initialized").await?;
        Ok((talk, time))
    }

    pub(crate) async fn ask(
        &mut self,
        method: &str,
        params: &Value,
        within: Duration,
    ) -> Result<Answer, Failure> {
        let deadline = tokio::time::Instant::now() + within;
        self.n_asked += 1;
        let id = self.n_asked;
        let question = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&question).await?;
        loop {
            let Ok(line) = timeout_at(deadline, self.lines.next_line()).await else {
                return Ok(Answer::None);
            };
            let line = line?.ok_or_else(|| format!("the server has ended before `{method}`"))?;
            let message: Value = serde_json::from_str(&line)?;
            // Questions and notices of the server are none of our business.
            if message["id"] == id && message.get("method").is_none() {
                let is_result = message.get("result").is_some();
                return Ok(if is_result {
                    Answer::Result
                } else {
                    Answer::Error
                });
            }
        }
    }

    async fn tell(&mut self, method: &str) -> Result<(), Failure> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method }))
            .await
    }

    async fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let line = format!("{message}\n");
        self.stdin.write_all(line.as_bytes()).await?;
        Ok(self.stdin.flush().await?)
    }

    /// What the server and its children hold now.
    pub(crate) fn memory(&self) -> Result<Memory, Failure> {
        let first = self.child.id().ok_or("the server has ended")?;
        let (mut resident, mut proportional) = (0, 0);
        for pid in usage::family_of(first)? {
            resident += usage::resident_kib_of(pid)?;
            proportional += usage::field(&format!("/proc/{pid}/smaps_rollup"), "Pss:")?;
        }
        Ok(Memory {
            resident: mebibytes(resident),
            proportional: mebibytes(proportional),
        })
    }

    /// Ends the input of the server, and kills it if that does not end it.
    pub(crate) async fn end(self) -> Result<(), Failure> {
        let Self {
            mut child,
            stdin,
            lines: _,
            n_asked: _,
        } = self;
        drop(stdin);
        if tokio::time::timeout(ENDS_WITHIN, child.wait())
            .await
            .is_err()
        {
            child.kill().await?;
        }
        Ok(())
    }
}

fn mebibytes(kibibytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let kibibytes = kibibytes as f64;
    kibibytes / 1024.0
}
