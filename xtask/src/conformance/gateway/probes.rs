//! Our own requests through the URL that the suite gets, because the suite accepts too much.

use super::catalog::{EXACT, LISTS};
use super::dialogs::DIALOGS;
use super::edge;
use super::http::Endpoint;
use super::legs::{Era, LEGACY_REVISION, Leg, MODERN_REVISION};
use super::mcp::Client;
use crate::conformance::oracle::Judgment;
use crate::conformance::verdict::Verdict;
use crate::failure::Failure;

/// Sends all probes of the leg, and prints each verdict.
pub(super) fn run(leg: &Leg, url: &str) -> Vec<Verdict> {
    let mut verdicts = Verdicts {
        leg,
        verdicts: Vec::new(),
    };
    let endpoint = match Endpoint::parse(url) {
        Ok(endpoint) => endpoint,
        Err(failure) => {
            verdicts.add("probes", "the URL", Some(failure.to_string()));
            return verdicts.verdicts;
        }
    };
    if leg.has_legacy_clients() {
        let client = Client::legacy(endpoint.clone());
        verdicts.add_all(LEGACY_REVISION, client);
    }
    if leg.has_modern_clients() {
        verdicts.add_all(MODERN_REVISION, Ok(Client::modern(endpoint.clone())));
        if leg.era != Era::Legacy {
            let client = Client::modern(endpoint.clone());
            for list in LISTS {
                let complaint = list.compare_hints(&client);
                verdicts.add("hints for caches", list.name, complaint);
            }
        }
    }
    if leg.era == Era::Both && !leg.is_direct() {
        for (name, check) in edge::CHECKS {
            let complaint = check(&endpoint).unwrap_or_else(|failure| Some(failure.to_string()));
            verdicts.add("at the edge", name, complaint);
        }
    }
    verdicts.verdicts
}

struct Verdicts<'a> {
    leg: &'a Leg,
    verdicts: Vec<Verdict>,
}

impl Verdicts<'_> {
    /// What every client of a revision must get.
    fn add_all(&mut self, revision: &str, client: Result<Client, Failure>) {
        let place = format!("probes of {revision}");
        let client = match client {
            Ok(client) => client,
            Err(failure) => {
                self.add(&place, "a session", Some(failure.to_string()));
                return;
            }
        };
        for list in LISTS {
            self.add(&place, list.name, list.compare(&client));
        }
        for exact in EXACT {
            self.add(&place, exact.name, exact.compare(&client));
        }
        for dialog in DIALOGS {
            self.add(&place, dialog.name, dialog.hold(&client));
        }
    }

    fn add(&mut self, place: &str, name: &'static str, complaint: Option<String>) {
        let verdict = Verdict {
            place: format!("{}: {place}", self.leg.name),
            scenario: name,
            judgment: Judgment {
                successes: usize::from(complaint.is_none()),
                complaints: complaint.into_iter().collect(),
            },
            log: String::new(),
        };
        println!("{verdict}");
        self.verdicts.push(verdict);
    }
}
