//! Shows all that can be learned about a server: what it is, can do and offers, and how long each
//! step took. A list that fails is shown as failed; the rest is shown all the same. Only a server
//! that is gone, or that gives no list at all, makes the command fail.

use std::time::{Duration, Instant};

use cocode_client::{Listing, Quarantined, RequestError, ServerFacts, chain};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Context;
use crate::error::{CliError, Code};
use crate::hints::{Doing, request_error};
use crate::printer::Style;
use crate::text::{duration, plain, plain_lines, wrap};

/// Width of the first column.
const COLUMN: usize = 14;

#[derive(Serialize)]
struct Report<'a> {
    name: Option<&'a str>,
    version: Option<&'a str>,
    protocol: Protocol<'a>,
    transport: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    capabilities: &'a [String],
    instructions: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Listed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Listed>,
    #[serde(rename = "resourceTemplates", skip_serializing_if = "Option::is_none")]
    templates: Option<Listed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<Listed>,
    steps: Vec<Step>,
    #[serde(rename = "totalMilliseconds")]
    total: f64,
    /// What the server said about itself, as it came.
    greeting: &'a RawValue,
}

#[derive(Serialize)]
struct Protocol<'a> {
    revision: &'a str,
    era: String,
    supported: &'a [String],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Listed {
    There {
        count: usize,
        quarantined: Vec<Unusable>,
        #[serde(skip_serializing_if = "Option::is_none")]
        incomplete: Option<String>,
    },
    Failed {
        error: Failure,
    },
}

#[derive(Serialize)]
struct Unusable {
    name: Option<String>,
    reason: String,
}

#[derive(Serialize)]
struct Failure {
    code: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Step {
    name: &'static str,
    milliseconds: f64,
    #[serde(skip)]
    took: Duration,
}

pub(crate) async fn run(context: &Context<'_>) -> Result<(), CliError> {
    let session = context.session;
    let facts = session.server();
    let known = &facts.capabilities;
    let mut steps: Vec<Step> = facts
        .steps
        .iter()
        .map(|step| Step::new(step.name, step.took))
        .collect();
    let mut timed = |name, begun: Instant| steps.push(Step::new(name, begun.elapsed()));
    let mut failures = Vec::new();
    let (mut tools, mut resources, mut templates, mut prompts) = (None, None, None, None);
    if known.tools {
        let begun = Instant::now();
        tools = Some(Listed::of(session.tools().await, &mut failures));
        timed("tools/list", begun);
    }
    if known.resources {
        let begun = Instant::now();
        resources = Some(Listed::of(session.resources().await, &mut failures));
        timed("resources/list", begun);
        let begun = Instant::now();
        templates = Some(Listed::of(
            session.resource_templates().await,
            &mut failures,
        ));
        timed("resources/templates/list", begun);
    }
    if known.prompts {
        let begun = Instant::now();
        prompts = Some(Listed::of(session.prompts().await, &mut failures));
        timed("prompts/list", begun);
    }
    let broken =
        |error| CliError::new(Code::SetupFailed, "cannot write what was found").because(&error);
    let greeting: &RawValue = facts.raw.decode().map_err(broken)?;
    let report = Report {
        name: facts.name.as_deref(),
        version: facts.version.as_deref(),
        protocol: Protocol {
            revision: facts.revision.as_str(),
            era: facts.era().to_string(),
            supported: &facts.supported,
        },
        transport: facts.transport,
        pid: session.pid(),
        capabilities: &known.names,
        instructions: facts.instructions.as_deref(),
        tools,
        resources,
        templates,
        prompts,
        steps,
        total: milliseconds(context.begun.elapsed()),
        greeting,
    };
    let n_lists = report.lists().into_iter().flatten().count();
    if context.printer.json() {
        let report = serde_json::to_string(&report).map_err(broken)?;
        context.printer.out_line(&report)?;
    } else {
        context.printer.out(report.for_people(context, facts))?;
    }
    fatal(&failures, n_lists).map_or(Ok(()), |error| Err(request_error(error, Doing::Other)))
}

/// The failure that leaves nothing to work with: the server is gone, or no list came at all.
fn fatal(failures: &[RequestError], n_lists: usize) -> Option<&RequestError> {
    let mut failed = failures.iter();
    failed
        .find(|error| matches!(error, RequestError::Closed { .. }))
        .or_else(|| failures.first().filter(|_| failures.len() == n_lists))
}

impl Listed {
    fn of<T>(listing: Result<Listing<T>, RequestError>, failures: &mut Vec<RequestError>) -> Self {
        match listing {
            Ok(listing) => Self::There {
                count: listing.items.len(),
                quarantined: listing
                    .quarantined
                    .into_iter()
                    .map(|Quarantined { name, reason }| Unusable { name, reason })
                    .collect(),
                incomplete: listing.incomplete.map(|reason| reason.to_string()),
            },
            Err(error) => {
                let (code, message) = (error.code(), chain(&error));
                failures.push(error);
                Self::Failed {
                    error: Failure { code, message },
                }
            }
        }
    }

    fn lines(&self) -> Vec<String> {
        match self {
            Self::Failed {
                error: Failure { code, message },
            } => vec![format!("failed: {} ({code})", plain(message))],
            Self::There {
                count,
                quarantined,
                incomplete,
            } => {
                let more = incomplete
                    .as_ref()
                    .map(|reason| format!(", and more: {reason}"));
                let mut lines = vec![format!("{count}{}", more.unwrap_or_default())];
                lines.extend(quarantined.iter().map(|Unusable { name, reason }| {
                    let name = plain(name.as_deref().unwrap_or("(no name)"));
                    format!("cannot be used: {name}, {}", plain(reason))
                }));
                lines
            }
        }
    }
}

impl Step {
    fn new(name: &'static str, took: Duration) -> Self {
        let milliseconds = milliseconds(took);
        Self {
            name,
            milliseconds,
            took,
        }
    }
}

impl Report<'_> {
    /// The lists that were asked for.
    fn lists(&self) -> [Option<&Listed>; 4] {
        let Self {
            tools,
            resources,
            templates,
            prompts,
            ..
        } = self;
        [tools, resources, templates, prompts].map(Option::as_ref)
    }

    fn for_people(&self, context: &Context<'_>, facts: &ServerFacts) -> String {
        let paint = context.printer.paint();
        let name = [
            self.name.unwrap_or("(a server without a name)"),
            self.version.unwrap_or_default(),
        ];
        let name = name.map(plain).join(" ");
        let mut lines = vec![paint.paint(Style::Bold, name.trim_end())];
        let mut field = |name: &str, values: Vec<String>| {
            for (index, value) in values.into_iter().enumerate() {
                let name = if index == 0 { name } else { "" };
                let padding = " ".repeat(COLUMN.saturating_sub(name.len()));
                lines.push(format!(
                    "  {}{padding}{value}",
                    paint.paint(Style::Dim, name)
                ));
            }
        };
        let era = facts.era();
        let supported = match self.protocol.supported {
            [] | [_] => String::new(),
            several => format!(", the server supports {}", plain(&several.join(", "))),
        };
        let revision = self.protocol.revision;
        let protocol = format!("{revision} ({era} era){supported}");
        field("protocol", vec![protocol]);
        let pid = self
            .pid
            .map(|pid| format!(", process {pid}"))
            .unwrap_or_default();
        field("transport", vec![format!("{}{pid}", self.transport)]);
        let capabilities = match self.capabilities {
            [] => "none".to_owned(),
            names => plain(&names.join(", ")),
        };
        field("capabilities", vec![capabilities]);
        if let Some(instructions) = self.instructions {
            let width = context.printer.width().saturating_sub(COLUMN + 2);
            let lines = plain_lines(instructions.trim()).join("\n");
            field("instructions", wrap(&lines, width));
        }
        let names = ["tools", "resources", "templates", "prompts"];
        for (name, listed) in names.into_iter().zip(self.lists()) {
            if let Some(listed) = listed {
                field(name, listed.lines());
            }
        }
        let steps = self
            .steps
            .iter()
            .map(|step| format!("{} {}", step.name, duration(step.took)));
        let total = Duration::from_secs_f64(self.total / 1000.0);
        let steps: Vec<String> = steps
            .chain([format!("total {}", duration(total))])
            .collect();
        field("timing", steps);
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        format!("{}\n", lines.join("\n"))
    }
}

fn milliseconds(duration: Duration) -> f64 {
    // Microseconds are as exact as this can be.
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}
