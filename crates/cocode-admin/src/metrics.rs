//! Numbers for Prometheus, as text.
//!
//! How many lines there are is bounded: labels are servers, states and ways to end, never tools,
//! clients or addresses.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::call_book::{BUCKETS, CallBook, TurnedAway};
use crate::model::{ClientSession, Facts, Server, ServerState};

/// What the text is.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is told beside the calls.
pub(crate) struct Numbers<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) servers: &'a [Server],
    pub(crate) sessions: &'a [ClientSession],
    pub(crate) calls: &'a CallBook,
    pub(crate) listeners: usize,
    pub(crate) questions: usize,
    pub(crate) troubles: usize,
}

impl Numbers<'_> {
    /// The text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a text does not fail.
        let _written = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let facts = self.facts;
        family(text, "cocode_build_info", "gauge", "The version that runs.")?;
        line(text, "cocode_build_info", &[("version", &facts.version)], 1)?;
        let about = "When the gateway was started, in seconds since 1970.";
        family(text, "cocode_start_time_seconds", "gauge", about)?;
        let started = facts.started_at.unix_seconds();
        line(text, "cocode_start_time_seconds", &[], started)?;
        self.write_servers(text)?;
        self.write_sessions(text)?;
        self.write_calls(text)?;
        let about = "Requests that were turned away before anything was begun for them.";
        family(text, "cocode_refused_total", "counter", about)?;
        for why in TurnedAway::ALL {
            let count = self.calls.turned_away(*why);
            line(
                text,
                "cocode_refused_total",
                &[("reason", why.as_str())],
                count,
            )?;
        }
        let about = "Browsers and programs that listen to events of the management API.";
        family(text, "cocode_event_listeners", "gauge", about)?;
        line(text, "cocode_event_listeners", &[], self.listeners)?;
        let about = "Questions of servers that wait for an answer.";
        family(text, "cocode_elicitations_pending", "gauge", about)?;
        line(text, "cocode_elicitations_pending", &[], self.questions)?;
        let about =
            "What keeps the gateway from working, such as an audit log that cannot be written.";
        family(text, "cocode_troubles", "gauge", about)?;
        line(text, "cocode_troubles", &[], self.troubles)
    }

    fn write_servers(&self, text: &mut String) -> fmt::Result {
        let about = "Servers in each state.";
        family(text, "cocode_servers", "gauge", about)?;
        for state in ServerState::ALL {
            let count = self
                .servers
                .iter()
                .filter(|one| one.state == *state)
                .count();
            line(text, "cocode_servers", &[("state", state.as_str())], count)?;
        }
        let about = "Processes of servers.";
        family(text, "cocode_processes", "gauge", about)?;
        line(text, "cocode_processes", &[], self.facts.processes)
    }

    fn write_sessions(&self, text: &mut String) -> fmt::Result {
        let mut transports: BTreeMap<&str, usize> = BTreeMap::new();
        for session in self.sessions {
            *transports.entry(&session.transport).or_default() += 1;
        }
        let about = "Sessions of clients, by what carries them.";
        family(text, "cocode_sessions", "gauge", about)?;
        for (transport, count) in transports {
            line(text, "cocode_sessions", &[("transport", transport)], count)?;
        }
        Ok(())
    }

    fn write_calls(&self, text: &mut String) -> fmt::Result {
        let about = "Calls under way.";
        family(text, "cocode_calls_in_flight", "gauge", about)?;
        line(text, "cocode_calls_in_flight", &[], self.calls.in_flight())?;
        let servers = self.calls.timings();
        let about = "Calls that have ended, by server and how.";
        family(text, "cocode_calls_total", "counter", about)?;
        for (server, timings) in &servers {
            for (outcome, count) in timings.outcomes() {
                let labels = [("server", server.as_str()), ("outcome", outcome.as_str())];
                line(text, "cocode_calls_total", &labels, count)?;
            }
        }
        let about = "How long servers took to answer calls, in seconds.";
        family(text, "cocode_call_seconds", "histogram", about)?;
        for (server, timings) in &servers {
            let server = ("server", server.as_str());
            let bounds = BUCKETS
                .iter()
                .map(f64::to_string)
                .chain(["+Inf".to_owned()]);
            let mut all = 0;
            for (bound, count) in bounds.zip(timings.cumulative()) {
                line(
                    text,
                    "cocode_call_seconds_bucket",
                    &[server, ("le", &bound)],
                    count,
                )?;
                all = count;
            }
            line(
                text,
                "cocode_call_seconds_sum",
                &[server],
                timings.sum_seconds(),
            )?;
            line(text, "cocode_call_seconds_count", &[server], all)?;
        }
        Ok(())
    }
}

fn family(text: &mut String, name: &str, kind: &str, about: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {about}\n# TYPE {name} {kind}")
}

fn line(
    text: &mut String,
    name: &str,
    labels: &[(&str, &str)],
    value: impl fmt::Display,
) -> fmt::Result {
    text.push_str(name);
    for (index, (label, worth)) in labels.iter().enumerate() {
        text.push(if index == 0 { '{' } else { ',' });
        write!(text, "{label}=\"")?;
        for character in worth.chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    if !labels.is_empty() {
        text.push('}');
    }
    writeln!(text, " {value}")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn labels_cannot_end_their_quotes_or_lines() {
        let mut text = String::new();
        let hostile = "a\"} 1\nb\\";
        line(&mut text, "x", &[("server", hostile), ("le", "1")], 2).unwrap();
        assert_eq!(text, "x{server=\"a\\\"} 1\\nb\\\\\",le=\"1\"} 2\n");
        assert_eq!(text.lines().count(), 1);
    }
}
