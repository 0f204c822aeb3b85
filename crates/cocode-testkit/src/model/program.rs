//! The scripted model as a process, for tests that drive processes.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::time::Duration;

use serde_json::Value;

use super::{ModelFormat, ModelScript};

/// How the program is called.
const USAGE: &str = "usage: cocode-scripted-model --script FILE.json \
                     --format anthropic|responses|chat [--log FILE]";

/// Before this, only a test that has failed leaves the program alone.
const LIFETIME: Duration = Duration::from_mins(10);

/// The program `cocode-scripted-model`: serves a script of turns until it is killed. The first line that
/// it prints is the address to configure. `--log` gets every request as one line of JSON with `path`,
/// `headers` and `body`, and every broken rule as one with `violation`, before the answer.
pub fn scripted_model_main(arguments: impl IntoIterator<Item = String>) -> i32 {
    match run(arguments) {
        Ok(()) => 0,
        Err(problem) => {
            let written = writeln!(io::stderr(), "{problem}\n{USAGE}");
            written.map_or(1, |()| 2)
        }
    }
}

fn run(arguments: impl IntoIterator<Item = String>) -> Result<(), String> {
    let mut arguments = arguments.into_iter();
    let (mut script, mut format, mut log) = (None, None, None);
    while let Some(flag) = arguments.next() {
        let value = arguments
            .next()
            .ok_or_else(|| format!("{flag} wants a value"))?;
        match flag.as_str() {
            "--script" => {
                let text = std::fs::read_to_string(&value);
                let text = text.map_err(|error| format!("cannot read {value}: {error}"))?;
                let parsed = ModelScript::parse(&text);
                script = Some(parsed.map_err(|error| format!("{value} is no script: {error}"))?);
            }
            "--format" => {
                let parsed = serde_json::from_value(Value::String(value));
                format = Some(parsed.map_err(|error| error.to_string())?);
            }
            "--log" => {
                let opened = OpenOptions::new().append(true).create(true).open(&value);
                log = Some(opened.map_err(|error| format!("cannot write {value}: {error}"))?);
            }
            other => return Err(format!("there is no {other}")),
        }
    }
    let script = script.ok_or("--script is missing")?;
    let format: ModelFormat = format.ok_or("--format is missing")?;
    let server = script.start_logging(format, log);
    let mut output = io::stdout();
    let announced = writeln!(output, "{}", server.base_url()).and_then(|()| output.flush());
    announced.map_err(|error| error.to_string())?;
    std::thread::sleep(LIFETIME);
    Ok(())
}
