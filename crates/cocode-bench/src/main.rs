//! Runs the benchmarks: `cargo xtask bench [NAME] [--json]`.
//!
//! Every number is taken beside its yardstick in the same run, and only their ratio is judged, so
//! that a slow or busy machine changes the times and not the verdict. The same program is also the
//! server that all clients talk to (`cocode-bench serve N`), so that one build gives both.
//!
//! It is the soak as well (`cargo xtask soak`), with all the servers of that: what is counted there
//! needs a process of its own.

mod agents;
mod benchmarks;
mod caller;
mod gateway;
mod http;
mod load;
mod managed;
mod ours;
mod peers;
mod processors;
mod raw;
mod report;
mod sdk;
mod search;
mod server;
mod soak;
mod turns;
mod usage;

use std::process::ExitCode;
use std::time::Duration;

use benchmarks::{ALL, Benchmark};
use report::{Format, Report};

/// Whatever went wrong: nothing here is handled, everything is shown.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: cocode-bench [NAME] [--json]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("serve") => serve(&arguments).map(|()| ExitCode::SUCCESS),
        Some("sleep") => sleep(&arguments).map(|()| ExitCode::SUCCESS),
        Some("soak") => soak::run(&arguments[1..]).map(exit_code),
        Some("soak-server") => Ok(scripted_server(&arguments)),
        Some("soak-counter") => {
            soak::gateway::server::serve(&arguments).map(|()| ExitCode::SUCCESS)
        }
        Some("serve-gateway") => gateway::serve(&arguments).map(|()| ExitCode::SUCCESS),
        Some("forward") => raw::forwarder::serve(&arguments[1..]).map(|()| ExitCode::SUCCESS),
        Some("bare-http") => raw::bare::serve(&arguments[1..]).map(|()| ExitCode::SUCCESS),
        Some("soak-farm") => soak_farm(&arguments).map(|()| ExitCode::SUCCESS),
        _ => measure(&arguments),
    };
    outcome.unwrap_or_else(|failure| {
        report::complain(&failure);
        ExitCode::from(2)
    })
}

fn serve(arguments: &[String]) -> Result<(), Failure> {
    let tools = match arguments.get(1).map(String::as_str) {
        Some("search") => server::search_tool(),
        count => server::tool_list(count.map_or(Ok(1), str::parse)?),
    };
    Ok(server::serve(tools)?)
}

/// A server that hears nothing before it has slept so many milliseconds.
fn sleep(arguments: &[String]) -> Result<(), Failure> {
    let time = arguments.get(1).ok_or("sleep needs milliseconds")?;
    std::thread::sleep(Duration::from_millis(time.parse()?));
    Ok(server::serve(server::tool_list(1))?)
}

/// A scripted server; its first word only marks the process.
fn scripted_server(arguments: &[String]) -> ExitCode {
    let code = cocode_testkit::scripted_server_main(arguments.iter().skip(2).cloned());
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn soak_farm(arguments: &[String]) -> Result<(), Failure> {
    soak::farm::serve(arguments.get(2..).ok_or("a farm needs a mark")?)
}

fn exit_code(holds: bool) -> ExitCode {
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
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
    Ok(exit_code(whole.finish()))
}
