//! What a gateway says about itself while it runs: lines for people, or one JSON object a line for
//! scripts. A reader that has gone away changes nothing for clients.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use cocode_core::percent_encode;
use serde::Serialize;
use serde_json::json;

use super::clients::{self, Entry};
use super::door::FIRST_TOKEN;
use super::listen::found_at;
use super::plan::Plan;
use crate::error::{CliError, Code};
use crate::manage::overview::view::Line;
use crate::printer::{Printer, Style};
use crate::text::{plain, safe_json};
use crate::tool_search::{ToolSearch, ToolSearchReport};

/// Says what happens.
#[derive(Debug)]
pub(crate) struct Voice<'a> {
    printer: &'a Printer,
    /// The address of the gateway, without a path.
    address: String,
    begun: Instant,
}

/// Where the gateway is looked after.
#[derive(Debug, Serialize)]
pub(crate) struct Office {
    pub(crate) url: String,
    /// Lets somebody in, once.
    pub(crate) code: String,
}

/// One thing that happened, as scripts see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Happened<'a> {
    event: &'static str,
    /// Since the beginning.
    at_milliseconds: u128,
    #[serde(flatten)]
    what: What<'a>,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum What<'a> {
    Listening {
        url: &'a str,
        /// Where it is looked after, and what to sign in with there, once.
        dashboard: &'a Office,
        /// The token that was created because there was none.
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<serde_json::Value>,
        /// What to type or paste, by tool.
        clients: BTreeMap<&'static str, &'a str>,
        tool_search: ToolSearchReport,
    },
    State {
        server: &'a Line,
        /// Where it is found, if it is served.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
    Configuration {
        changes: &'a [String],
        problems: &'a [String],
        kept: &'a [String],
    },
    Nothing {},
}

impl<'a> Voice<'a> {
    pub(crate) fn new(plan: &Plan, address: SocketAddr, printer: &'a Printer) -> Self {
        Self {
            printer,
            address: format!("{}://{}", plan.scheme(), found_at(address)),
            begun: Instant::now(),
        }
    }

    /// Clients can connect.
    pub(crate) fn listening(
        &self,
        search: &ToolSearch,
        entry: Entry<'_>,
        office: &Office,
    ) -> Result<(), CliError> {
        let url = self.url();
        let clients = clients::lines(&url, entry);
        if self.printer.json() {
            let clients = clients.iter();
            let clients = clients.map(|client| (client.id, client.line.as_str()));
            return self.say_json(
                "listening",
                What::Listening {
                    url: &url,
                    dashboard: office,
                    token: match entry {
                        Entry::NewToken(token) => {
                            Some(json!({ "name": FIRST_TOKEN, "token": token.expose() }))
                        }
                        Entry::Open | Entry::ByToken => None,
                    },
                    clients: clients.collect(),
                    tool_search: search.report(),
                },
            );
        }
        let paint = self.printer.paint();
        let bold = |text: &str| paint.paint(Style::Bold, text);
        let head = format!(
            "listening at {}, each server by itself at {url}/NAME\n",
            bold(&url)
        );
        let token = match entry {
            Entry::Open => None,
            Entry::ByToken => (!self.printer.quiet()).then(|| {
                "clients need a token: `cocode gateway token list` shows their names, `cocode gateway token add NAME` \
                 makes another one\n"
                    .to_owned()
            }),
            // Not shown again, so that `--quiet` does not hide it.
            Entry::NewToken(token) => Some(format!(
                "clients need the token `{FIRST_TOKEN}`, because they could change files or run commands; it is shown \
                 this once: {}\n",
                bold(token.expose())
            )),
        };
        let clients = clients.iter().filter(|_| !self.printer.quiet());
        let clients = clients.map(|client| format!("  {}\n", client.told(paint)));
        let rest = (!self.printer.quiet()).then(|| {
            let Office { url, code } = office;
            let (url, code) = (bold(url), bold(code));
            format!("dashboard at {url}, sign in with {code}\n{search}\n")
        });
        let lines = std::iter::once(head).chain(token).chain(clients);
        let text: String = lines.chain(rest).collect();
        self.printer.out(text)
    }

    /// The address of all servers.
    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.address)
    }

    /// A server is in another state, or offers something else.
    pub(crate) fn state(&self, line: &Line, name: &str) {
        attempted(self.try_state(line, name));
    }

    fn try_state(&self, line: &Line, name: &str) -> Result<(), CliError> {
        let url = line
            .is_good()
            .then(|| format!("{}/{}", self.url(), percent_encode(name)));
        if self.printer.json() {
            return self.say_json("state", What::State { server: line, url });
        }
        if self.printer.quiet() {
            return Ok(());
        }
        let told = plain(&line.told());
        self.printer.out_line(&match url {
            Some(url) => format!("{told}, at {url}"),
            None => told,
        })
    }

    /// The files of configuration have changed.
    pub(crate) fn configuration(&self, changes: &[String], problems: &[String], kept: &[String]) {
        attempted(self.try_configuration(changes, problems, kept));
    }

    fn try_configuration(
        &self,
        changes: &[String],
        problems: &[String],
        kept: &[String],
    ) -> Result<(), CliError> {
        if changes.is_empty() && problems.is_empty() && kept.is_empty() {
            return Ok(());
        }
        if self.printer.json() {
            let what = What::Configuration {
                changes,
                problems,
                kept,
            };
            return self.say_json("configuration", what);
        }
        if self.printer.quiet() {
            return Ok(());
        }
        let lines = changes.iter().chain(problems).chain(kept);
        let lines = lines.map(|line| format!("configuration: {}\n", plain(line)));
        self.printer.out(lines.collect::<String>())
    }

    /// Somebody wants the gateway to end.
    pub(crate) fn ending(&self) {
        attempted(self.try_ending());
    }

    fn try_ending(&self) -> Result<(), CliError> {
        if self.printer.json() {
            return self.say_json("ending", What::Nothing {});
        }
        if self.printer.quiet() {
            return Ok(());
        }
        self.printer
            .out_line("ending: requests under way may finish; another signal ends at once")
    }

    fn say_json(&self, event: &'static str, what: What<'_>) -> Result<(), CliError> {
        let happened = Happened {
            event,
            at_milliseconds: self.begun.elapsed().as_millis(),
            what,
        };
        let line = serde_json::to_string(&happened).map_err(|error| {
            CliError::new(Code::SetupFailed, "cannot write JSON").because(&error)
        })?;
        self.printer.out_line(&safe_json(&line))
    }
}

/// Who serves others does not end because there is no room for what it says.
fn attempted(said: Result<(), CliError>) {
    if let Err(error) = said {
        tracing::warn!(reason = error.message, "something could not be said");
    }
}
