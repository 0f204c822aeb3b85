//! `persistent`: one session for all calls, against a process for each call.

use std::ffi::OsString;
use std::path::PathBuf;

use cocode_client::{RequestOptions, Session, SessionOptions, stdio};

use super::Runtime;
use crate::Failure;
use crate::caller::{Caller as _, Echo};
use crate::load::{one_by_one, repeat};
use crate::ours::Ours;
use crate::peers::Peers;
use crate::report::{Better, Case, Findings, Series, Target};

const ROUNDS: usize = 5;
const KEPT: usize = 2_000;
const ANEW: usize = 40;
const KEPT_WITH_NODE: usize = 300;
const ANEW_WITH_NODE: usize = 4;

/// What one of the founding papers of this project claims.
const CLAIM: Target = Target::AtLeast(5.3);

pub(super) fn run() -> Result<Findings, Failure> {
    let mut findings = Findings::default();
    findings
        .cases
        .push(Runtime::TwoWorkers.run(bench_server())?);
    match NodeServer::find() {
        Some(node) => findings
            .cases
            .push(Runtime::TwoWorkers.run(node_server(node))?),
        None => findings.notes.push(
            "persistent: server-memory is not installed (`cargo xtask peers`), so only the \
             bench server was measured"
                .into(),
        ),
    }
    Ok(findings)
}

async fn bench_server() -> Result<Case, Failure> {
    let echo = Echo::plain(1024)?;
    let mut kept = Ours::start(1).await?;
    one_by_one(&mut kept, &echo, KEPT / 4).await?;
    let mut case = empty("the bench server");
    let mut anew = Series::new("a process a call");
    for _ in 0..ROUNDS {
        let round = one_by_one(&mut kept, &echo, KEPT).await?;
        case.ours.push(round.per_second);
        anew.push(repeat!(ANEW, call_anew(&echo)).per_second);
    }
    case.against.push(anew);
    Ok(case)
}

async fn call_anew(echo: &Echo) -> Result<(), Failure> {
    let mut once = Ours::start(1).await?;
    echo.check(once.echo(echo).await?)?;
    once.session.close().await;
    Ok(())
}

async fn node_server(node: NodeServer) -> Result<Case, Failure> {
    let kept = node.connect().await?;
    let mut case = empty("server-memory on Node");
    let mut anew = Series::new("a process a call");
    for _ in 0..ROUNDS {
        let round = repeat!(KEPT_WITH_NODE, NodeServer::call(&kept));
        case.ours.push(round.per_second);
        anew.push(repeat!(ANEW_WITH_NODE, node.call_anew()).per_second);
    }
    case.against.push(anew);
    Ok(case)
}

fn empty(server: &str) -> Case {
    Case {
        name: format!("persistent: {server}"),
        unit: "calls/s",
        better: Better::Higher,
        ours: Series::new("one session"),
        against: Vec::new(),
        sdk: None,
        target: Some(CLAIM),
    }
}

/// A public server that people really run.
struct NodeServer {
    node: PathBuf,
    script: PathBuf,
}

impl NodeServer {
    /// Where `cargo xtask peers` installs it.
    fn find() -> Option<Self> {
        let peers = Peers::find().ok()?;
        let (node, script) = peers.node_server("memory").ok()?;
        Some(Self { node, script })
    }

    async fn connect(&self) -> Result<Session, Failure> {
        // A file that is not there: the graph is empty, and nothing is written.
        let file = (
            OsString::from("MEMORY_FILE_PATH"),
            OsString::from("/nonexistent/memory.jsonl"),
        );
        let target = stdio(&self.node, [&self.script], [file]);
        Ok(Session::connect(target, SessionOptions::default()).await?)
    }

    async fn call_anew(&self) -> Result<(), Failure> {
        let once = self.connect().await?;
        Self::call(&once).await?;
        once.close().await;
        Ok(())
    }

    async fn call(session: &Session) -> Result<(), Failure> {
        let called = session.call_tool("read_graph", None, RequestOptions::default());
        let result = called.await?;
        if result.is_error {
            return Err(result.raw.to_string().into());
        }
        Ok(())
    }
}
