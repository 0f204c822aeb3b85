//! Runs the benchmarks: `cargo xtask bench [NAME] [--json]`.
//!
//! Every number is taken beside its yardstick in the same run, and only their ratio is judged, so
//! that a slow or busy machine changes the times and not the verdict. The same program is also the
//! server that all clients talk to (`cocode-bench serve N`), so that one build gives both.

mod benchmarks;
mod caller;
mod load;
mod ours;
mod processors;
mod raw;
mod report;
mod sdk;
mod server;
mod turns;
mod usage;

use std::process::ExitCode;

use benchmarks::{ALL, Benchmark};
use report::{Format, Report};

/// Whatever went wrong: nothing here is handled, everything is shown.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: cocode-bench [NAME] [--json]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("serve") => serve(&arguments).map(|()| ExitCode::SUCCESS),
        _ => measure(&arguments),
    };
    outcome.unwrap_or_else(|failure| {
        report::complain(&failure);
        ExitCode::from(2)
    })
}

fn serve(arguments: &[String]) -> Result<(), Failure> {
    let n_tools = arguments.get(1).map_or(Ok(1), |text| text.parse())?;
    Ok(server::serve(n_tools)?)
}

/// Success means that no target was missed.
fn measure(arguments: &[String]) -> Result<ExitCode, Failure> {
    let mut format = Format::Table;
    let mut chosen: Vec<&Benchmark> = Vec::new();
    for argument in arguments {
        if argument == "--json" {
            format = Format::Json;
            continue;
        }
        let known = ALL.iter().find(|benchmark| benchmark.name == argument);
        let known = known.ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|benchmark| benchmark.name).collect();
            format!(
                "no benchmark `{argument}`; there are {}\n{USAGE}",
                names.join(", ")
            )
        })?;
        chosen.push(known);
    }
    if chosen.is_empty() {
        chosen.extend(ALL);
    }
    let mut whole = Report::begin(format);
    for benchmark in chosen {
        whole.add((benchmark.run)()?);
    }
    Ok(if whole.finish() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
