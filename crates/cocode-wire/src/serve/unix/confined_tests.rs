//! Programs inside and outside of a sandbox at a server.

use std::io::Read as _;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::time::Instant;

use cocode_process::{
    Confinement, PathHandle, ProcessSpec, confinement_support, spawn, spawn_detached,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;

use super::super::UnixServer;
use super::{Complaints, TOLD_EVERY};

/// Tells the test program where to connect.
const CONNECT_ROLE: &str = "COCODE_WIRE_TEST_CONNECT";

/// What clients hear that are let in.
const WELCOME: &str = "welcome";

/// Not a test by itself: connects, and tells what it hears.
#[test]
#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "is told what to do by its environment, and tells the test what happened"
)]
fn connect() {
    let Some(socket) = std::env::var_os(CONNECT_ROLE) else {
        return;
    };
    let mut stream = StdStream::connect(socket).expect("connected");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).expect("text");
    println!("\nheard {heard}");
}

fn copy_spec(test: &str, socket: Option<&Path>, confinement: Option<Confinement>) -> ProcessSpec {
    let mut spec = ProcessSpec::new(std::env::current_exe().expect("this program"));
    let name = format!("serve::unix::confined::tests::{test}");
    spec.args = ["--exact", &name, "--nocapture"].map(Into::into).into();
    let role = socket.map(|socket| (CONNECT_ROLE.into(), socket.into()));
    spec.env = role.into_iter().collect();
    spec.confinement = confinement;
    spec
}

/// Output of a copy of this program that does one test, or plays a role.
async fn output_of(spec: &ProcessSpec) -> String {
    let mut child = spawn(spec).expect("started");
    let mut output = String::new();
    let mut stdout = child.take_stdout().expect("piped");
    stdout.read_to_string(&mut output).await.expect("text");
    let report = child.wait().await;
    assert!(report.success(), "{output}{:?}", child.stderr());
    output
}

/// What a client hears of the server that is no descendant of it.
async fn heard(server: &UnixServer, confinement: Option<Confinement>) -> String {
    let spec = copy_spec("connect", Some(server.path()), confinement);
    let stdout = spawn_detached(&spec, None).expect("started");
    let mut stdout = pipe::Receiver::from_owned_fd(stdout.into()).expect("a pipe");
    let output = async {
        let mut output = String::new();
        stdout.read_to_string(&mut output).await.expect("text");
        output
    };
    heard_by(server, output).await
}

async fn heard_by(server: &UnixServer, output: impl Future<Output = String>) -> String {
    let serving = async {
        loop {
            let mut client = server.accept().await;
            let welcome = client.stream().write_all(WELCOME.as_bytes()).await;
            welcome.expect("a client");
        }
    };
    let output = tokio::select! {
        output = output => output,
        () = serving => unreachable!("it serves for ever"),
    };
    let mut lines = output.lines();
    let heard = lines.find_map(|line| line.strip_prefix("heard "));
    heard.expect("an end").to_owned()
}

fn check_support() {
    let support = confinement_support();
    assert!(support.is_sufficient(), "{support}");
}

#[tokio::test]
async fn programs_in_a_sandbox_are_turned_away_and_others_are_let_in() {
    check_support();
    let house = TempDir::new().expect("a directory");
    let path = house.path().join("run/server.sock");
    let server = UnixServer::bind(&path).await.expect("a server");
    let read_only = Confinement::read_only();
    // It may even write beside the socket.
    let workspace = Confinement::workspace_write(PathHandle::open(house.path()).unwrap());
    // Without network, a program in the sandbox cannot connect at all.
    for confinement in [read_only.with_network(), workspace.with_network()] {
        let heard = heard(&server, Some(confinement.clone())).await;
        assert!(heard.contains("in a sandbox"), "{confinement:?}: {heard}");
        assert!(!heard.contains(WELCOME), "{confinement:?}: {heard}");
    }
    assert_eq!(heard(&server, None).await, WELCOME);
}

/// As for a service whose manager has confined it already.
#[tokio::test]
async fn a_server_in_a_sandbox_lets_in_who_is_in_the_same_and_nobody_from_further_inside() {
    check_support();
    let house = TempDir::new().expect("a directory");
    let sandbox =
        Confinement::workspace_write(PathHandle::open(house.path()).unwrap()).with_network();
    let test = "programs_in_a_sandbox_are_turned_away_and_others_are_let_in";
    let mut spec = copy_spec(test, None, Some(sandbox));
    spec.env = vec![("TMPDIR".into(), house.path().into())];
    let output = output_of(&spec).await;
    assert!(output.contains("1 passed"), "{output}");
}

#[tokio::test]
async fn descendants_of_the_server_are_refused() {
    let house = TempDir::new().expect("a directory");
    let path = house.path().join("run/server.sock");
    let server = UnixServer::bind(&path).await.expect("a server");
    let child = copy_spec("connect", Some(&path), None);
    let refused = heard_by(&server, output_of(&child)).await;
    assert!(refused.contains("its own process has started"), "{refused}");
    assert_eq!(heard(&server, None).await, WELCOME);
}

#[test]
fn those_who_come_again_and_again_do_not_fill_the_log() {
    let complaints = Complaints::default();
    let start = Instant::now();
    assert!(complaints.is_due(start));
    assert!(!complaints.is_due(start));
    assert!(!complaints.is_due(start + TOLD_EVERY / 2));
    assert!(complaints.is_due(start + TOLD_EVERY));
    assert!(!complaints.is_due(start + TOLD_EVERY));
}
