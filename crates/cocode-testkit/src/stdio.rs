//! The scripted server as a process: its arguments, its log, its life on stdin and stdout.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::lines;
use crate::message::Message;
use crate::process;
use crate::script::Script;

/// Before this, only a test that has failed leaves a stubborn server alone.
const LIFETIME_AFTER_EOF: Duration = Duration::from_mins(10);

/// How the program is called.
const USAGE: &str = "usage: cocode-scripted-server [--script JSON|@FILE] [--era legacy|modern|dual] \
                     [--log FILE|tcp:ADDRESS]";

/// The program `cocode-scripted-server`: serves a script on stdin and stdout.
///
/// `--log` gets every received message as one line of JSON, flushed; what is not JSON is written
/// as a JSON string. Comes back when the program should end, with its exit code.
pub fn scripted_server_main(arguments: impl IntoIterator<Item = String>) -> i32 {
    let outcome = Invocation::parse(arguments).and_then(|invocation| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime
            .map_err(|error| error.to_string())?
            .block_on(serve(invocation))
    });
    match outcome {
        // Not by returning: the runtime would wait for its read of stdin.
        Ok(()) => process::exit(0),
        Err(problem) => {
            let written = writeln!(io::stderr(), "{problem}\n{USAGE}");
            written.map_or(1, |()| 2)
        }
    }
}

struct Invocation {
    script: Script,
    log: Log,
    run: u32,
}

impl Invocation {
    fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = arguments.into_iter();
        let mut script = Script::new();
        let mut era = None;
        let (mut log, mut run) = (Log::none(), 1);
        let mut newer_script = None;
        while let Some(flag) = arguments.next() {
            let value = arguments
                .next()
                .ok_or_else(|| format!("{flag} lacks its value"))?;
            match flag.as_str() {
                "--script" => script = read_script(&value)?,
                "--era" => {
                    let name = serde_json::from_value(Value::from(value));
                    era = Some(name.map_err(|error| error.to_string())?);
                }
                "--log" => {
                    let opened = Log::open(&value).map_err(|error| error.to_string())?;
                    (log, run, newer_script) = opened;
                }
                _ => return Err(format!("unknown argument {flag}")),
            }
        }
        if let Some(newer) = newer_script {
            script = read_script(&newer)?;
        }
        script.era = era.unwrap_or(script.era);
        Ok(Self { script, log, run })
    }
}

fn read_script(value: &str) -> Result<Script, String> {
    let text = match value.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?,
        None => value.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| format!("not a script: {error}"))
}

async fn serve(Invocation { script, log, run }: Invocation) -> Result<(), String> {
    let ignored = if script.process.ignore_sigterm {
        Some(signal(SignalKind::terminate()).map_err(|error| error.to_string())?)
    } else {
        None
    };
    let record = |message: &Message| log.write(message);
    lines::serve(
        &script,
        run,
        tokio::io::stdin(),
        tokio::io::stdout(),
        record,
    )
    .await;
    if script.process.stay_after_eof {
        tokio::time::sleep(LIFETIME_AFTER_EOF).await;
    }
    drop(ignored);
    Ok(())
}

/// Where received messages are written.
struct Log(Mutex<Box<dyn Write + Send>>);

impl Log {
    fn none() -> Self {
        Self(Mutex::new(Box::new(io::sink())))
    }

    /// Opens the log. If there is a listener to tell, it hears who we are, and we learn which run
    /// this is and whether there is a newer script.
    fn open(target: &str) -> io::Result<(Self, u32, Option<String>)> {
        let Some(address) = target.strip_prefix("tcp:") else {
            let file = OpenOptions::new().create(true).append(true).open(target)?;
            return Ok((Self(Mutex::new(Box::new(file))), 1, None));
        };
        let mut stream = TcpStream::connect(address)?;
        writeln!(stream, "{}", std::process::id())?;
        let mut orders = String::new();
        BufReader::new(stream.try_clone()?).read_line(&mut orders)?;
        let (run, script) = orders.trim().split_once(' ').unwrap_or((orders.trim(), ""));
        let run = run.parse().map_err(io::Error::other)?;
        let script = (!script.is_empty()).then(|| script.to_owned());
        Ok((Self(Mutex::new(Box::new(stream))), run, script))
    }

    fn write(&self, message: &Message) {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&message.raw).is_ok();
        let line = if is_json {
            format!("{}\n", message.raw)
        } else {
            format!("{}\n", Value::from(message.raw.as_str()))
        };
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = log.write_all(line.as_bytes()).and_then(|()| log.flush());
        written.expect("the log is kept as long as the server lives");
    }
}
