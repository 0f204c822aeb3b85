//! `watched`: what it costs that a gateway knows who calls, and writes it down. The program itself is
//! measured, open to everybody of its machine, with tokens alone, and with tokens and the audit log.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::gateway::front::{Place, Pool, SERVER};
use crate::caller::Echo;
use crate::load::{Round, at_once, one_by_one};
use crate::report::{Better, Case, Findings, Series, Target};
use crate::turns::schedule;
use crate::{Failure, usage};

const RESULT_BYTES: usize = 1024;
const IN_FLIGHT: usize = 64;
const CALLS_ONE_BY_ONE: usize = 2_000;
const CALLS_AT_ONCE: usize = 20_000;
const CYCLES: usize = 2;
/// How long a server may take to be there.
const READY_WITHIN: usize = 200;
const READY_PAUSE: Duration = Duration::from_millis(25);

const LATENCY: Target = Target::AtMost(1.2);
const THROUGHPUT: Target = Target::AtLeast(0.8);
/// An answer waits until its line is in the file.
const WRITTEN_LATENCY: Target = Target::AtMost(2.5);
const WRITTEN_THROUGHPUT: Target = Target::AtLeast(0.5);

/// Who is let in, and what is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    Nobody,
    Tokens,
    Audit,
}

const WATCHES: [Watch; 3] = [Watch::Nobody, Watch::Tokens, Watch::Audit];

pub(super) fn run() -> Result<Findings, Failure> {
    let program = std::env::current_exe()?.with_file_name("cocode");
    if !program.is_file() {
        let message = "the program `cocode` is not built beside this one: cargo xtask bench";
        return Err(message.into());
    }
    let cases = Runtime::TwoWorkers.run(measure(program))?;
    let notes = vec!["watched: all ratios are to the same gateway without tokens".into()];
    Ok(Findings { cases, notes })
}

async fn measure(program: PathBuf) -> Result<Vec<Case>, Failure> {
    let mut gateways = Vec::new();
    for watch in WATCHES {
        gateways.push(Watched::start(&program, watch)?);
    }
    let echo = Arc::new(Echo::plain(RESULT_BYTES)?);
    let (mut single, mut crowded) = (Vec::new(), Vec::new());
    for turn in schedule(&WATCHES, CYCLES) {
        for gateway in gateways.iter().filter(|one| one.watch == turn.client) {
            let mut pool = gateway.pool(1).await?;
            let round = one_by_one(&mut pool, &echo, CALLS_ONE_BY_ONE).await?;
            single.extend(turn.is_counted.then_some((turn.client, round)));
        }
    }
    for turn in schedule(&WATCHES, CYCLES) {
        for gateway in gateways.iter().filter(|one| one.watch == turn.client) {
            let round = gateway.crowd(&echo).await?;
            crowded.extend(turn.is_counted.then_some((turn.client, round)));
        }
    }
    for gateway in gateways {
        gateway.check()?;
    }
    Ok(cases(&single, &crowded))
}

fn cases(single: &[(Watch, Round)], crowded: &[(Watch, Round)]) -> Vec<Case> {
    let median = |round: &Round| round.median.as_secs_f64() * 1e6;
    let per_second = |round: &Round| round.per_second;
    let processor = |round: &Round| round.processor;
    let mut cases = Vec::new();
    for (watch, name, latency, throughput) in [
        (Watch::Tokens, "tokens", LATENCY, THROUGHPUT),
        (
            Watch::Audit,
            "tokens and audit log",
            WRITTEN_LATENCY,
            WRITTEN_THROUGHPUT,
        ),
    ] {
        let series = |rounds: &[(Watch, Round)], value: &dyn Fn(&Round) -> f64| {
            let ours = Series::among(rounds, &watch, name, value);
            (ours, Series::among(rounds, &Watch::Nobody, "open", value))
        };
        for (what, unit, better, (ours, open), target) in [
            (
                "p50, 1 in flight".to_owned(),
                "µs",
                Better::Lower,
                series(single, &median),
                Some(latency),
            ),
            (
                format!("{IN_FLIGHT} in flight"),
                "calls/s",
                Better::Higher,
                series(crowded, &per_second),
                Some(throughput),
            ),
            (
                format!("processor time, {IN_FLIGHT} in flight"),
                "µs/call",
                Better::Lower,
                series(crowded, &processor),
                None,
            ),
        ] {
            cases.push(Case {
                name: format!("watched: {name}, {what}"),
                unit,
                better,
                ours,
                against: vec![open],
                sdk: None,
                target,
            });
        }
    }
    cases
}

/// A gateway with a home of its own, which is thrown away in the end.
struct Watched {
    watch: Watch,
    child: Child,
    address: SocketAddr,
    token: Option<String>,
    program: PathBuf,
    home: PathBuf,
}

impl Watched {
    fn start(program: &Path, watch: Watch) -> Result<Self, Failure> {
        let name = format!("cocode-bench-{}-{watch:?}", std::process::id());
        let home = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&home)?;
        let server = std::env::current_exe()?;
        let servers = format!(
            "[mcp_servers.{SERVER}]\ncommand = '{}'\nargs = ['serve', 'search']\n",
            server.display()
        );
        std::fs::write(home.join("mcp.toml"), servers)?;
        let is_audited = watch == Watch::Audit;
        let settings = format!("[gateway.audit]\nenabled = {is_audited}\n");
        std::fs::write(home.join("config.toml"), settings)?;
        let token = match watch {
            Watch::Nobody => None,
            Watch::Tokens | Watch::Audit => {
                let made = command(program, &home)
                    .args(["gateway", "token", "add", "bench"])
                    .output()?;
                if !made.status.success() {
                    return Err(String::from_utf8_lossy(&made.stderr).into());
                }
                Some(String::from_utf8(made.stdout)?.trim().to_owned())
            }
        };
        let mut child = command(program, &home)
            .args(["gateway", "--listen", ":0", "--json"])
            .stdout(Stdio::piped())
            .spawn()?;
        let said = child.stdout.take().ok_or("the gateway says nothing")?;
        let mut first = String::new();
        BufReader::new(said).read_line(&mut first)?;
        let first: serde_json::Value = serde_json::from_str(&first)?;
        let url = first["url"].as_str().ok_or("the gateway is nowhere")?;
        let address = url.strip_prefix("http://").unwrap_or(url);
        let address = address.strip_suffix("/mcp").unwrap_or(address).parse()?;
        Ok(Self {
            watch,
            child,
            address,
            token,
            program: program.to_owned(),
            home,
        })
    }

    /// Connections for calls of the server, once it is there.
    async fn pool(&self, n_connections: usize) -> Result<Pool, Failure> {
        let token = self.token.as_deref();
        let mut tried = 0;
        loop {
            let opened = Pool::open_as(token, self.address, Place::Alone, n_connections).await;
            match opened {
                Err(_not_yet) if tried < READY_WITHIN => {
                    tried += 1;
                    tokio::time::sleep(READY_PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Many calls at once, with the processor time of the gateway.
    async fn crowd(&self, echo: &Arc<Echo>) -> Result<Round, Failure> {
        let pool = self.pool(IN_FLIGHT).await?;
        let before = usage::processor_time_of(self.child.id())?;
        let round = at_once(&pool, echo, IN_FLIGHT, CALLS_AT_ONCE).await?;
        let used = usage::processor_time_of(self.child.id())?.saturating_sub(before);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let n_calls = CALLS_AT_ONCE.next_multiple_of(IN_FLIGHT) as f64;
        Ok(Round {
            processor: used.as_secs_f64() * 1e6 / n_calls,
            ..round
        })
    }

    /// What was to be written down is there, whole.
    fn check(&self) -> Result<(), Failure> {
        if self.watch != Watch::Audit {
            return Ok(());
        }
        let verified = command(&self.program, &self.home)
            .args(["audit", "verify"])
            .output()?;
        let said = String::from_utf8_lossy(&verified.stdout);
        let counted = said.strip_prefix("intact: ").and_then(|rest| {
            let (number, _) = rest.split_once(' ')?;
            number.parse::<usize>().ok()
        });
        match counted {
            Some(entries) if entries >= CALLS_AT_ONCE => Ok(()),
            _ => Err(format!("the audit log is not as it should be: {said}").into()),
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Nobody is there who could be told.
        let _gone = self.child.kill().and_then(|()| self.child.wait());
        let _gone = std::fs::remove_dir_all(&self.home);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is measured is a process, and no server of ours"
)]
fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("COCODE_HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .current_dir(home)
        .stdin(Stdio::null());
    command
}
