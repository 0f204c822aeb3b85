//! `cargo xtask conformance`: the official suites against our client session and against servers
//! behind our gateway, judged by our own oracle.
//!
//! The suites let some clients pass that never connected and some servers that answer anything,
//! and run whatever scenarios they happen to contain. Here the scenarios and the checks that must
//! succeed are pinned in [`table`], what the suite lists is compared with that in [`listing`], and
//! [`oracle`] judges the checks that a scenario wrote. [`mod@client`] and [`mod@gateway`] run them.

mod client;
mod gateway;
mod listing;
mod oracle;
mod results;
mod table;
mod verdict;

pub(crate) use self::client::{Selection, client};
pub(crate) use self::gateway::gateway;
use crate::counts::Counts;
use crate::failure::Failure;

const USAGE: &str = "usage: cargo xtask conformance client|gateway|upstream [OPTION...]";

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let (side, outcome) = match arguments.split_first() {
        Some((side, rest)) if side == "client" => (side, client::run(rest)),
        Some((side, rest)) if side == "gateway" => (side, gateway::run(rest)),
        Some((side, rest)) if side == "upstream" => (side, gateway::upstream::run(rest)),
        _ => return Err(Failure::new(USAGE)),
    };
    let counts = outcome.map_err(|failure| {
        Failure::because(side, &failure).with_counts(failure.counts().unwrap_or(Counts {
            passed: 0,
            failed: 1,
        }))
    })?;
    println!("{counts}");
    Ok(())
}
