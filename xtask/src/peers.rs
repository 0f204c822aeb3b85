//! Installs the public MCP implementations that tests talk to, under `target/peers`, exactly as
//! the lock files in `peers` pin them.
//!
//! | installed as | from | holds |
//! |---|---|---|
//! | `npm` | `peers/npm/package-lock.json` | Node 24, the conformance suites, reference servers |
//! | `agents` | `peers/agents/package-lock.json` | agents whose configuration cocode takes over |
//! | `agent-servers` | `peers/agent-servers/package-lock.json` | an agent beside which ours is timed, for `bench agent` alone |
//! | `clients` | `peers/clients/package-lock.json` | the Inspector, both TypeScript SDKs |
//! | `dashboard` | `peers/dashboard/package-lock.json` | a driver for browsers, a checker of accessibility |
//! | `oauth` | `peers/oauth/package-lock.json` | an authorization server, a driver for browsers |
//! | `python` | `peers/python/requirements.lock` | Python reference servers, FastMCP |
//! | `websocket` | `peers/python/websocket.lock` | the Python SDK with its WebSocket server |
//! | `catalog` | `peers/catalog/package-lock.json` | servers of which only the tools are listed |
//! | `admin-python` | `peers/python/admin.lock` | what judges the management API: schemathesis, a parser of metrics |
//! | `catalog-python` | `peers/python/catalog.lock` | the same, in Python |

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::shell::{self, output, program};
use crate::workspace;

/// Tests find the installed peers through this variable, and at `target/peers` without it.
pub(crate) const VARIABLE: &str = "COCODE_PEERS";

/// What the first digits of `node --version` must be.
const NODE_MAJOR: &str = "v24.";

/// The oldest Python that the lock files are resolved for.
const PYTHON_MINIMUM: (u32, u32) = (3, 10);

/// One directory below `target/peers`, installed and stamped on its own.
struct Group {
    name: &'static str,
    /// Files below `peers` that decide what is installed; a change installs anew.
    inputs: &'static [&'static str],
    /// The program without which the group is not installed, whatever the stamp says.
    program: &'static str,
    install: fn(&Path) -> Result<(), Failure>,
}

/// What `bench agent` compares with, besides the agents of the other groups. No test needs it.
const AGENT_SERVERS: Group = Group {
    name: "agent-servers",
    inputs: &[
        "agent-servers/package.json",
        "agent-servers/package-lock.json",
        "agent-servers/.npmrc",
    ],
    program: "node_modules",
    install: |directory| run_npm("agent-servers", directory, &["--ignore-scripts"]),
};

const AGENTS: Group = Group {
    name: "agents",
    inputs: &[
        "agents/package.json",
        "agents/package-lock.json",
        "agents/.npmrc",
    ],
    program: "node_modules",
    install: |directory| run_npm("agents", directory, &["--ignore-scripts"]),
};

const GROUPS: &[Group] = &[
    Group {
        name: "npm",
        inputs: &["npm/package.json", "npm/package-lock.json", "npm/.npmrc"],
        program: "node_modules/.bin/node",
        install: install_npm,
    },
    AGENTS,
    Group {
        name: "clients",
        inputs: &[
            "clients/package.json",
            "clients/package-lock.json",
            "clients/.npmrc",
        ],
        program: "node_modules/.bin/mcp-inspector",
        install: |directory| run_npm("clients", directory, &["--ignore-scripts"]),
    },
    Group {
        name: "dashboard",
        inputs: &[
            "dashboard/package.json",
            "dashboard/package-lock.json",
            "dashboard/.npmrc",
        ],
        program: "node_modules/axe-core",
        install: |directory| run_npm("dashboard", directory, &["--ignore-scripts"]),
    },
    Group {
        name: "oauth",
        inputs: &[
            "oauth/package.json",
            "oauth/package-lock.json",
            "oauth/.npmrc",
        ],
        program: "node_modules/oidc-provider",
        install: |directory| run_npm("oauth", directory, &["--ignore-scripts"]),
    },
    Group {
        name: "python",
        inputs: &["python/requirements.lock"],
        program: "bin/python",
        install: |directory| install_python(directory, "requirements.lock"),
    },
    Group {
        name: "websocket",
        inputs: &["python/websocket.lock"],
        program: "bin/python",
        install: |directory| install_python(directory, "websocket.lock"),
    },
    Group {
        name: "admin-python",
        inputs: &["python/admin.lock"],
        program: "bin/schemathesis",
        install: |directory| install_python(directory, "admin.lock"),
    },
    Group {
        name: "catalog",
        inputs: &[
            "catalog/package.json",
            "catalog/package-lock.json",
            "catalog/.npmrc",
        ],
        program: "node_modules/@playwright/mcp",
        // What is optional there are key stores and cloud accounts, 50 MB of them.
        install: |directory| {
            run_npm(
                "catalog",
                directory,
                &["--ignore-scripts", "--omit=optional"],
            )
        },
    },
    Group {
        name: "catalog-python",
        inputs: &["python/catalog.lock"],
        program: "bin/python",
        install: |directory| install_python(directory, "catalog.lock"),
    },
];

/// All that tests talk to.
pub(crate) fn ensure() -> Result<(), Failure> {
    ensure_groups(GROUPS)
}

/// The agents that `bench agent` compares with.
pub(crate) fn ensure_agent_servers() -> Result<(), Failure> {
    ensure_groups(&[AGENTS, AGENT_SERVERS]).map_err(|failure| {
        Failure::because("the agents to compare with cannot be installed", failure)
    })
}

fn ensure_groups(groups: &[Group]) -> Result<(), Failure> {
    let peers = workspace::peers();
    create_directory(&peers)?;
    // Two tasks at once wait for each other; the lock goes with the process, however it ends.
    let lock_path = peers.join(".lock");
    let lock = File::create(&lock_path)
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|error| Failure::because(lock_path.display(), error))?;
    for group in groups {
        group.ensure(&peers)?;
    }
    drop(lock);
    Ok(())
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new("usage: cargo xtask peers"));
    }
    ensure()?;
    println!("peers are ready in {}", workspace::peers().display());
    Ok(())
}

/// The Node 24 that `cargo xtask peers` installed.
pub(crate) fn node() -> PathBuf {
    workspace::peers().join("npm/node_modules/.bin/node")
}

/// A directory below `node_modules` of the npm peers.
pub(crate) fn npm_package(name: &str) -> PathBuf {
    workspace::peers().join("npm/node_modules").join(name)
}

impl Group {
    fn ensure(&self, peers: &Path) -> Result<(), Failure> {
        let directory = peers.join(self.name);
        let stamp_path = peers.join(format!("{}.stamp", self.name));
        let stamp = self.stamp()?;
        // A stamp that cannot be read is a stamp that does not match.
        let installed = fs::read_to_string(&stamp_path).is_ok_and(|found| found == stamp);
        if installed && directory.join(self.program).exists() {
            return Ok(());
        }
        println!("installing the {} peers", self.name);
        remove(&stamp_path)?;
        (self.install)(&directory)?;
        write(&stamp_path, &stamp)
    }

    fn stamp(&self) -> Result<String, Failure> {
        let mut hash = Fnv::new();
        for input in self.inputs {
            hash.update(input.as_bytes());
            hash.update(&read(&workspace::peers_source().join(input))?);
        }
        Ok(format!("{:016x}\n", hash.0))
    }
}

fn install_npm(directory: &Path) -> Result<(), Failure> {
    run_npm("npm", directory, &[])?;
    // The `node` package only has a shim until its install script has fetched the binary.
    let version = output(program(directory.join("node_modules/.bin/node")).arg("--version"))?;
    if version.starts_with(NODE_MAJOR) {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "the npm package `node` gives {}, not {NODE_MAJOR}x: did its install script run?",
            version.trim()
        )))
    }
}

/// Installs what the lock file in a directory below `peers` says.
fn run_npm(source: &str, directory: &Path, flags: &[&str]) -> Result<(), Failure> {
    create_directory(directory)?;
    for file in ["package.json", "package-lock.json", ".npmrc"] {
        let source = workspace::peers_source().join(source).join(file);
        fs::copy(&source, directory.join(file))
            .map_err(|error| Failure::because(source.display(), error))?;
    }
    shell::run(
        program("npm")
            .args(["ci", "--no-audit", "--no-fund"])
            .args(flags)
            .current_dir(directory),
    )
    .map_err(|failure| Failure::because("npm, which comes with any Node, is needed once", failure))
}

fn install_python(directory: &Path, lock: &str) -> Result<(), Failure> {
    let (major, minor) = PYTHON_MINIMUM;
    run_python(&[
        "-c",
        &format!("import sys; assert sys.version_info >= ({major}, {minor})"),
    ])
    .map_err(|failure| {
        Failure::because(
            format!("python3 {major}.{minor} or newer is needed"),
            failure,
        )
    })?;
    if directory.exists() {
        fs::remove_dir_all(directory)
            .map_err(|error| Failure::because(directory.display(), error))?;
    }
    run_python(&["-m", "venv", &directory.display().to_string()])?;
    // The lock file is complete and hashed. Without `--no-deps` pip would also refuse versions
    // that peers/python/overrides.txt deliberately relaxed.
    shell::run(
        program(directory.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--no-input"])
            .args([
                "--disable-pip-version-check",
                "--no-deps",
                "--require-hashes",
                "-r",
            ])
            .arg(workspace::peers_source().join("python").join(lock)),
    )
}

fn run_python(arguments: &[&str]) -> Result<(), Failure> {
    shell::run(program("python3").args(arguments))
}

fn create_directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| Failure::because(path.display(), error))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::because(path.display(), error))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::because(path.display(), error))
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::because(path.display(), error))
        }
        _ => Ok(()),
    }
}

/// The FNV-1a hash: a stamp must mean the same under every compiler, which the standard hasher
/// does not promise.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Fnv;

    #[test]
    fn stamp_hash_is_fnv_1a() {
        let mut hash = Fnv::new();
        hash.update(b"foobar");
        assert_eq!(hash.0, 0x8594_4171_f739_67e8);
    }
}
