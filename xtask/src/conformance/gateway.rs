//! `cargo xtask conformance gateway`: the suites and our own probes against the fixture server,
//! alone and behind `cocode gateway`.
//!
//! Each [leg](legs) is one arrangement of fixture and gateway. The suites check less than they
//! seem to, so [`probes`] demands exact answers through the same URL; [`exceptions`] lists what
//! cannot be had, with reasons.

mod catalog;
mod dialogs;
mod edge;
mod exceptions;
mod http;
mod legs;
mod mcp;
mod probes;
mod processes;
mod suites;
pub(super) mod upstream;

use std::fs;

use self::legs::{LEGS, Leg};
use self::processes::Programs;
use super::listing;
use super::table::SERVER_SUITES;
use super::verdict::{Verdict, summarize};
use crate::counts::Counts;
use crate::failure::Failure;
use crate::{peers, workspace};

const USAGE: &str =
    "usage: cargo xtask conformance gateway [--scenario NAME] [--leg NAME [--url URL]]";

/// What to run, and against what.
#[derive(Default)]
struct Selection {
    scenario: Option<String>,
    leg: Option<String>,
    /// A server that is there already, in place of the leg's own.
    url: Option<String>,
}

impl Selection {
    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut selection = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let value = arguments.next().ok_or_else(|| Failure::new(USAGE))?;
            let place = match argument.as_str() {
                "--scenario" => &mut selection.scenario,
                "--leg" => &mut selection.leg,
                "--url" => &mut selection.url,
                _ => return Err(Failure::new(USAGE)),
            };
            *place = Some(value.clone());
        }
        if selection.url.is_some() && selection.leg.is_none() {
            return Err(Failure::new(USAGE));
        }
        Ok(selection)
    }

    fn legs(&self) -> Result<Vec<&'static Leg>, Failure> {
        let wanted = |leg: &&Leg| self.leg.as_ref().is_none_or(|name| name == leg.name);
        let legs: Vec<&Leg> = LEGS.iter().filter(wanted).collect();
        if legs.is_empty() {
            let names: Vec<&str> = LEGS.iter().map(|leg| leg.name).collect();
            let message = format!("no such leg; there are {}", names.join(", "));
            return Err(Failure::new(message));
        }
        Ok(legs)
    }
}

/// Runs what the command line asks for.
pub(super) fn run(arguments: &[String]) -> Result<Counts, Failure> {
    let selection = Selection::parse(arguments)?;
    peers::ensure()?;
    run_selected(&selection)
}

/// Runs all legs. The peers must be installed.
pub(crate) fn gateway() -> Result<Counts, Failure> {
    run_selected(&Selection::default())
}

fn run_selected(selection: &Selection) -> Result<Counts, Failure> {
    let legs = selection.legs()?;
    listing::compare_all(SERVER_SUITES)?;
    let programs = match selection.url {
        Some(_) => None,
        None => Some(Programs::build(&legs)?),
    };
    let mut verdicts = Vec::new();
    for leg in legs {
        println!("\n--- {}", leg.name);
        let directory = workspace::conformance_results()
            .join("gateway")
            .join(leg.name);
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .map_err(|error| Failure::because(directory.display(), error))?;
        }
        fs::create_dir_all(&directory)
            .map_err(|error| Failure::because(directory.display(), error))?;
        let server = match &programs {
            Some(programs) => Some(programs.start(leg, &directory)?),
            None => None,
        };
        let url = match (&server, &selection.url) {
            (Some(server), _) => server.url(),
            (None, Some(url)) => url,
            (None, None) => return Err(Failure::new(USAGE)),
        };
        let scenario = selection.scenario.as_deref();
        let of_leg = suites::run(leg, url, scenario, &directory)?;
        verdicts.extend(of_leg);
        if scenario.is_none() {
            verdicts.extend(probes::run(leg, url));
        }
    }
    if verdicts.is_empty() {
        return Err(Failure::new(
            "no scenario of that name is run: see xtask/src/conformance/table/servers.rs",
        ));
    }
    conclude(&verdicts)
}

fn conclude(verdicts: &[Verdict]) -> Result<Counts, Failure> {
    println!();
    listing::say_what_is_not_run(SERVER_SUITES);
    exceptions::say();
    let mut places: Vec<String> = Vec::new();
    for verdict in verdicts {
        if !places.contains(&verdict.place) {
            places.push(verdict.place.clone());
        }
    }
    summarize(places, verdicts);
    let passed = verdicts.iter().filter(|verdict| verdict.passed()).count();
    let counts = Counts {
        passed,
        failed: verdicts.len() - passed,
    };
    if counts.failed > 0 {
        let all = verdicts.len();
        let message = format!("{} of {all} scenarios and probes failed", counts.failed);
        return Err(Failure::new(message).with_counts(counts));
    }
    Ok(counts)
}
