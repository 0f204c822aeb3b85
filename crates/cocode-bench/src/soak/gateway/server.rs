//! A server of the soak: `cocode-bench soak-counter MARK NAME ERA DELAY FOLDER`. It writes down every
//! call before it answers, in a file of its process, so that whatever is done twice is found, however
//! the process ends.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Failure;

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// One server, as the soak knows it.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) name: String,
    era: Era,
    delay: Duration,
}

impl Counter {
    /// Both eras, and times to answer from none to so long that calls are under way when a server
    /// is killed.
    pub(crate) fn numbered(number: usize) -> Self {
        let millis = [0, 20, 50, 100, 250];
        let era = if number.is_multiple_of(2) {
            Era::Legacy
        } else {
            Era::Modern
        };
        Self {
            name: format!("counter-{number}"),
            era,
            delay: Duration::from_millis(millis[number % millis.len()]),
        }
    }

    /// The words with which this program is that server.
    pub(crate) fn words(&self, mark: &str, folder: &Path) -> Result<Vec<String>, Failure> {
        let folder = folder.to_str().ok_or("the path of a folder")?;
        let era = match self.era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        };
        let delay = self.delay.as_millis().to_string();
        let words = ["soak-counter", mark, &self.name, era, &delay, folder];
        Ok(words.map(str::to_owned).into())
    }

    /// The file of one process of this server.
    fn file(&self, folder: &Path, pid: u32) -> PathBuf {
        folder.join(format!("{}.{pid}", self.name))
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    params: Option<Params>,
}

#[derive(Default, Deserialize)]
struct Params {
    #[serde(default)]
    arguments: Arguments,
}

#[derive(Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    number: u64,
    #[serde(default)]
    text: String,
}

/// The process itself.
pub(crate) fn serve(arguments: &[String]) -> Result<(), Failure> {
    let [_role, _mark, name, era, delay, folder] = arguments else {
        return Err("a counter needs a mark, a name, an era, a delay and a folder".into());
    };
    let counter = Counter {
        name: name.clone(),
        era: if era == "modern" {
            Era::Modern
        } else {
            Era::Legacy
        },
        delay: Duration::from_millis(delay.parse()?),
    };
    let path = counter.file(Path::new(folder), std::process::id());
    let mut done = OpenOptions::new().create(true).append(true).open(path)?;
    let (answers, waiting) = mpsc::channel();
    // All wait equally long, so that their order is that of their arrival.
    let answering = thread::spawn(move || answer_on_time(&waiting));
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if let Some((answer, wait)) = counter.answer(&line, &mut done)? {
            // Who answers ends only when nobody listens.
            if answers.send((Instant::now() + wait, answer)).is_err() {
                break;
            }
        }
    }
    drop(answers);
    answering
        .join()
        .map_err(|_panic| "answering has failed")??;
    Ok(())
}

fn answer_on_time(waiting: &mpsc::Receiver<(Instant, String)>) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    for (due, answer) in waiting {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        output.write_all(answer.as_bytes())?;
        output.flush()?;
    }
    Ok(())
}

impl Counter {
    /// The answer to a line, if it is a request, and how long it takes.
    fn answer(&self, line: &str, done: &mut File) -> Result<Option<(String, Duration)>, Failure> {
        let message: Message<'_> = serde_json::from_str(line)?;
        let (Some(id), Some(method)) = (message.id, message.method) else {
            return Ok(None);
        };
        let mut wait = Duration::ZERO;
        let mut result = match (self.era, method.as_str()) {
            (Era::Legacy, "initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": self.name, "version": "1" },
            }),
            (Era::Modern, "server/discover") => json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
                "ttlMs": 0,
                "cacheScope": "private",
            }),
            (_, "tools/list") => json!({
                "tools": [{
                    "name": "count",
                    "description": "Notes a number, and says what it was told.",
                    "inputSchema": { "type": "object" },
                    "annotations": { "readOnlyHint": false, "idempotentHint": false },
                }],
                "ttlMs": 0,
                "cacheScope": "private",
            }),
            (_, "tools/call") => {
                let Arguments { number, text } = message.params.unwrap_or_default().arguments;
                done.write_all(format!("{number}\n").as_bytes())?;
                wait = self.delay;
                json!({ "content": [{ "type": "text", "text": text }] })
            }
            (Era::Legacy, "ping") => json!({}),
            _ => Value::Null,
        };
        if result.is_null() {
            let error = json!({ "code": -32601, "message": "no such method" });
            let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n");
            return Ok(Some((answer, wait)));
        }
        if self.era == Era::Modern {
            result["resultType"] = json!("complete");
        }
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
        Ok(Some((answer, wait)))
    }
}
