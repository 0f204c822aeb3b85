//! From the start of `cocode exec` to the moment at which the first request has reached the model.
//!
//! The model is a scripted one in this process, which takes the time when it has read the whole
//! request. Beside it the same program is only asked for its version, which is the least that it can do.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn, ScriptedModel};
use tokio::process::Command;

use super::{milliseconds, spreads};
use crate::Failure;
use crate::agents::Stage;
use crate::report::{Better, Case, Findings, Series, Target};
use crate::turns::schedule;

/// Cycles of six rounds with one start of each kind, see [`crate::turns`].
const CYCLES: usize = 4;
/// Programs are not expected to end later.
const ENDS_WITHIN: Duration = Duration::from_mins(1);
/// A server that is slow hears nothing before.
const SLOW_MILLISECONDS: &str = "5000";
/// One that never answers sleeps longer than anybody waits.
const FOREVER_MILLISECONDS: &str = "600000";
const MANY_SERVERS: usize = 10;
const TOOLS_PER_SERVER: &str = "10";

/// What the first request may take.
const FIRST_REQUEST: Target = Target::AtMost(30.0);
/// What a server may add that nobody can wait for: its process has to be made.
const NOT_DELAYED: Target = Target::AtMost(1.5);

/// What is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Version,
    NoServers,
    /// No servers either, and nothing has ever been kept.
    Fresh,
    Silent,
    Slow,
    Many,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Version,
        Self::NoServers,
        Self::Fresh,
        Self::Silent,
        Self::Slow,
        Self::Many,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Version => "cocode --version",
            Self::NoServers => "no servers",
            Self::Fresh => "the very first start",
            Self::Silent => "a server that never answers",
            Self::Slow => "a server that takes 5 s",
            Self::Many => "ten servers",
        }
    }

    /// How this program is started as each of the servers, by name.
    fn servers(self) -> Vec<(String, [&'static str; 2])> {
        match self {
            Self::Version | Self::NoServers | Self::Fresh => Vec::new(),
            Self::Silent => vec![("silent".to_owned(), ["sleep", FOREVER_MILLISECONDS])],
            Self::Slow => vec![("slow".to_owned(), ["sleep", SLOW_MILLISECONDS])],
            Self::Many => (0..MANY_SERVERS)
                .map(|number| (format!("server-{number}"), ["serve", TOOLS_PER_SERVER]))
                .collect(),
        }
    }

    /// What is not to be there at the start, in the home of the program.
    fn forgotten(self) -> Option<&'static str> {
        match self {
            Self::Version | Self::NoServers => None,
            Self::Fresh => Some("state"),
            // A server whose tools are remembered is not started before it is needed.
            Self::Silent | Self::Slow | Self::Many => Some("state/cache"),
        }
    }
}

/// The model, and when it was asked last.
struct Clocked {
    model: ScriptedModel,
    asked: Arc<Mutex<Option<Instant>>>,
}

/// What one start showed.
struct Seen {
    /// Until the model was asked, or the end where none is.
    first: Duration,
    whole: Duration,
}

pub(super) async fn measure(stage: &Stage) -> Result<Findings, Failure> {
    let clocked = Clocked::start();
    for kind in Kind::ALL {
        furnish(stage, kind)?;
    }
    let mut firsts = Kind::ALL.map(|kind| Series::new(kind.name()));
    let mut wholes = firsts.clone();
    for turn in schedule(&Kind::ALL, CYCLES) {
        let seen = once(stage, &clocked, turn.client).await?;
        if turn.is_counted {
            let series = Kind::ALL.into_iter().zip(&mut firsts).zip(&mut wholes);
            for ((kind, first), whole) in series {
                if kind == turn.client {
                    first.push(milliseconds(seen.first));
                    whole.push(milliseconds(seen.whole));
                }
            }
        }
    }
    let complaints = clocked.model.violations();
    if !complaints.is_empty() {
        return Err(format!("the model was asked wrongly: {complaints:?}").into());
    }
    let notes = vec![
        spreads("start to the first request, ms", &firsts.each_ref()),
        spreads("start to the end of `exec`, ms", &wholes.each_ref()),
    ];
    let [version, none, fresh, silent, slow, many] = firsts;
    let beside = |against: &Series| vec![against.clone()];
    Ok(Findings {
        cases: vec![
            case("no servers", none.clone(), Vec::new(), Some(FIRST_REQUEST)),
            case(
                "no servers, beside --version",
                none.clone(),
                beside(&version),
                None,
            ),
            case(
                "the very first start, beside others",
                fresh,
                beside(&none),
                None,
            ),
            case(
                "a silent server, beside none",
                silent,
                beside(&none),
                Some(NOT_DELAYED),
            ),
            case(
                "a slow server, beside none",
                slow,
                beside(&none),
                Some(NOT_DELAYED),
            ),
            case("ten servers, beside none", many, beside(&none), None),
        ],
        notes,
    })
}

fn case(name: &str, ours: Series, against: Vec<Series>, target: Option<Target>) -> Case {
    Case {
        name: format!("agent: first request, {name}"),
        unit: "ms",
        better: Better::Lower,
        ours,
        against,
        sdk: None,
        target,
    }
}

impl Clocked {
    fn start() -> Self {
        let asked = Arc::new(Mutex::new(None));
        let clock = Arc::clone(&asked);
        let script = ModelScript::new().forever_computed(move |_request| {
            let mut asked = clock.lock().unwrap_or_else(PoisonError::into_inner);
            asked.get_or_insert_with(Instant::now);
            ModelTurn::new().text("hello")
        });
        Self {
            model: script.start(ModelFormat::Anthropic),
            asked,
        }
    }

    /// When the model was asked first since this was called last.
    fn take(&self) -> Option<Instant> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.take()
    }
}

/// Writes the configuration of a kind.
fn furnish(stage: &Stage, kind: Kind) -> Result<(), Failure> {
    let program = std::env::current_exe()?.display().to_string();
    let mut text = String::new();
    for (name, words) in kind.servers() {
        let server = format!("[mcp_servers.{name}]\ncommand = {program:?}\nargs = {words:?}\n\n");
        text.write_str(&server)?;
    }
    let home = stage.home(kind.name());
    std::fs::create_dir_all(&home)?;
    Ok(std::fs::write(home.join("mcp.toml"), text)?)
}

async fn once(stage: &Stage, clocked: &Clocked, kind: Kind) -> Result<Seen, Failure> {
    let mut command = stage.cocode(kind.name());
    match kind {
        Kind::Version => command.arg("--version"),
        _ => command
            .args(["exec", "hello"])
            .env("ANTHROPIC_BASE_URL", clocked.model.base_url())
            .env("ANTHROPIC_API_KEY", "key-of-nobody"),
    };
    if let Some(forgotten) = kind.forgotten() {
        forget(&stage.home(kind.name()).join(forgotten))?;
    }
    clocked.take();
    let begun = Instant::now();
    run(&mut command, kind).await?;
    let whole = begun.elapsed();
    let first = match (kind, clocked.take()) {
        (Kind::Version, _) => whole,
        (_, Some(asked)) => asked.duration_since(begun),
        (_, None) => return Err(format!("with {} no model was asked", kind.name()).into()),
    };
    Ok(Seen { first, whole })
}

fn forget(directory: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

async fn run(command: &mut Command, kind: Kind) -> Result<(), Failure> {
    let mut child = command.spawn()?;
    let ended = tokio::time::timeout(ENDS_WITHIN, child.wait()).await;
    let ended = ended.map_err(|_late| format!("with {} it does not end", kind.name()))??;
    if ended.success() {
        Ok(())
    } else {
        Err(format!("with {} it failed: {ended}", kind.name()).into())
    }
}
