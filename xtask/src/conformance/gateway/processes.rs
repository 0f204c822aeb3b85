//! Starts the fixture and the gateway, and ends them.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::legs::{Front, Leg, Upstream};
use crate::failure::Failure;
use crate::shell::{built, program, succeeds};

/// The name under which the gateway knows the server behind it.
pub(super) const NAME: &str = "fixture";

const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a process may take to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// What is under test.
pub(super) struct Programs {
    fixture: PathBuf,
    /// None if no leg needs it.
    cocode: Option<PathBuf>,
}

/// A server for one leg; ends when it is dropped, the front first.
pub(super) struct Server {
    url: String,
    _front: Running,
    _behind: Option<Running>,
}

/// A process with all its children.
pub(super) struct Running(Child);

impl Programs {
    pub(super) fn build(legs: &[&Leg]) -> Result<Self, Failure> {
        let fixture = built("cocode-fixture", &["--bin", "cocode-fixture"])?;
        if legs.iter().all(|leg| leg.is_direct()) {
            return Ok(Self {
                fixture,
                cocode: None,
            });
        }
        let cocode = built("cocode", &["--bin", "cocode"])?;
        if !succeeds(program(&cocode).args(["gateway", "--help"])) {
            return Err(Failure::new(
                "this cocode has no gateway yet; `--leg direct` needs none",
            ));
        }
        Ok(Self {
            fixture,
            cocode: Some(cocode),
        })
    }

    pub(super) fn start(&self, leg: &Leg, directory: &Path) -> Result<Server, Failure> {
        let (upstream, cocode) = match (leg.front, &self.cocode) {
            (Front::Fixture, _) => {
                let (front, url) = self.start_fixture(leg, directory)?;
                return Ok(Server {
                    url,
                    _front: front,
                    _behind: None,
                });
            }
            (Front::Gateway(upstream), Some(cocode)) => (upstream, cocode),
            (Front::Gateway(_), None) => return Err(Failure::new("no gateway was built")),
        };
        let (behind, entry) = match upstream {
            Upstream::Stdio => {
                let fixture = self.fixture.display().to_string();
                let era = leg.era.word();
                let entry =
                    format!("command = {fixture:?}\nargs = [\"stdio\", \"--era\", \"{era}\"]\n");
                (None, entry)
            }
            Upstream::Http => {
                let (behind, url) = self.start_fixture(leg, directory)?;
                (Some(behind), format!("url = {url:?}\n"))
            }
        };
        let (front, port) = start_gateway(cocode, &entry, directory)?;
        Ok(Server {
            // The suite's check of Host headers wants this name.
            url: format!("http://localhost:{port}/mcp/{NAME}"),
            _front: front,
            _behind: behind,
        })
    }

    /// Starts the fixture over HTTP and returns its URL.
    fn start_fixture(&self, leg: &Leg, directory: &Path) -> Result<(Running, String), Failure> {
        let mut command = program(&self.fixture);
        command.args(["http", "--era", leg.era.word()]);
        let log = directory.join("fixture.log");
        let mut running = Running::start(&mut command, Stdio::piped(), &log)?;
        let mut url = String::new();
        if let Some(output) = running.0.stdout.take() {
            BufReader::new(output)
                .read_line(&mut url)
                .map_err(|error| Failure::because("the fixture's URL", error))?;
        }
        if url.trim().is_empty() {
            let message = format!("the fixture did not start: see {}", log.display());
            return Err(Failure::new(message));
        }
        Ok((running, url.trim().to_owned()))
    }
}

/// Starts a gateway in front of one server, whose tools keep their names, and returns its port.
pub(super) fn start_gateway(
    cocode: &Path,
    entry: &str,
    directory: &Path,
) -> Result<(Running, u16), Failure> {
    let home = directory.join("home");
    let because = |error: std::io::Error| Failure::because(home.display(), error);
    fs::create_dir_all(&home).map_err(because)?;
    let servers = format!("[mcp_servers.{NAME}]\n{entry}");
    fs::write(home.join("mcp.toml"), servers).map_err(because)?;
    fs::write(home.join("config.toml"), "[gateway]\nprefix = \"never\"\n").map_err(because)?;
    let port = free_port()?;
    let mut command = program(cocode);
    command
        .args(["gateway", "--listen", &format!("127.0.0.1:{port}")])
        .current_dir(&home)
        // Nothing of the user who runs this.
        .env("COCODE_HOME", &home)
        .env("HOME", &home)
        .env("XDG_CONFIG_HOME", &home)
        .env("XDG_STATE_HOME", &home)
        .env("XDG_RUNTIME_DIR", &home);
    let log = directory.join("gateway.log");
    let mut front = Running::start(&mut command, Stdio::from(create(&log)?), &log)?;
    front.wait_for(port, &log)?;
    Ok((front, port))
}

impl Server {
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Running {
    pub(super) fn start(command: &mut Command, output: Stdio, log: &Path) -> Result<Self, Failure> {
        let errors = File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(|error| Failure::because(log.display(), error))?;
        let child = command
            .process_group(0)
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|error| Failure::because(command.get_program().display(), error))?;
        Ok(Self(child))
    }

    /// Waits until it listens.
    pub(super) fn wait_for(&mut self, port: u16, log: &Path) -> Result<(), Failure> {
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = self
                .0
                .try_wait()
                .map_err(|error| Failure::because("the server", error))?;
            if ended.is_some() || Instant::now() >= deadline {
                let message = format!("the server does not listen: see {}", log.display());
                return Err(Failure::new(message));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn signal(&self, signal: &str) -> bool {
        let group = format!("-{}", self.0.id());
        succeeds(program("kill").args([signal, "--", &group]))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal("-TERM");
        let deadline = Instant::now() + END_TIMEOUT;
        while Instant::now() < deadline {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(POLL);
        }
        eprintln!("a process of the test did not end by itself");
        self.signal("-KILL");
        if let Err(error) = self.0.wait() {
            eprintln!("a process of the test: {error}");
        }
    }
}

pub(super) fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| Failure::because(path.display(), error))
}

pub(super) fn free_port() -> Result<u16, Failure> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Failure::because("no free port", error))
}
