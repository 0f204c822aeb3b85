//! Debian packages that `--system` installs: the whole list is here, each with its reason.

use crate::failure::Failure;
use crate::shell::{program, run, succeeds};

/// A Debian package and the command that succeeds once it is there.
struct Package {
    name: &'static str,
    probe: &'static [&'static str],
    reason: &'static str,
}

const PACKAGES: &[Package] = &[
    Package {
        name: "chromium",
        probe: &["chromium", "--version"],
        reason: "a real browser, which logs in, clicks through consent, and uses the dashboard",
    },
    Package {
        name: "dbus-daemon",
        probe: &["dbus-daemon", "--version"],
        reason: "the bus on which a keyring is tested",
    },
    Package {
        name: "git",
        probe: &["git", "--version"],
        reason: "mcp-server-git works on a repository, and tidy asks for the tracked files",
    },
    Package {
        name: "gnome-keyring",
        probe: &["gnome-keyring-daemon", "--version"],
        reason: "a real Secret Service, which keeps secrets",
    },
    Package {
        name: "golang-go",
        probe: &["go", "version"],
        reason: "a runtime that makes its own system calls, in the sandbox",
    },
    Package {
        name: "nginx-light",
        probe: &["/usr/sbin/nginx", "-v"],
        reason: "reads packaging/nginx, and stands before two gateways",
    },
    Package {
        name: "npm",
        probe: &["npm", "--version"],
        reason: "installs Node 24 and the npm peers",
    },
    Package {
        name: "postgresql",
        probe: &["sh", "-c", "ls /usr/lib/postgresql/*/bin/postgres"],
        reason: "a real database, which gateways share",
    },
    Package {
        name: "python3-venv",
        probe: &["python3", "-c", "import ensurepip, venv"],
        reason: "holds the PyPI peers",
    },
    Package {
        name: "strace",
        probe: &["strace", "--version"],
        reason: "sees whether listing servers starts or contacts anything",
    },
    Package {
        name: "systemd",
        probe: &["systemd-analyze", "--version"],
        reason: "judges packaging/systemd",
    },
    Package {
        name: "tmux",
        probe: &["tmux", "-V"],
        reason: "a real terminal, in which sessions are held and looked at",
    },
    Package {
        name: "util-linux",
        probe: &["unshare", "--version"],
        reason: "gives tests a view of the system in which an organization has its files",
    },
];

/// Tests whose own name starts with this need something from [`PACKAGES`] that a plain
/// development machine may lack. `.config/nextest.toml` leaves them out by default.
pub(crate) const TESTS: &str = r"test(/(^|::)system_/)";

/// Installs the packages that are missing.
pub(crate) fn install() -> Result<(), Failure> {
    let missing: Vec<&Package> = PACKAGES
        .iter()
        .filter(|package| !present(package))
        .collect();
    for package in PACKAGES {
        let state = if present(package) {
            "present"
        } else {
            "missing"
        };
        println!("{}: {state} ({})", package.name, package.reason);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    if crate::shell::output(program("id").arg("-u"))?.trim() != "0" {
        return Err(Failure::new(format!(
            "missing Debian packages: {}; install them, or run as root",
            names.join(" ")
        )));
    }
    let apt = || {
        let mut apt = program("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    run(apt().args(["update", "--quiet"]))?;
    run(apt()
        .args(["install", "--quiet", "--yes", "--no-install-recommends"])
        .args(&names))?;
    match missing.iter().find(|package| !present(package)) {
        None => Ok(()),
        Some(package) => Err(Failure::new(format!(
            "`{}` still fails after installing {}",
            package.probe.join(" "),
            package.name
        ))),
    }
}

fn present(package: &Package) -> bool {
    match package.probe.split_first() {
        Some((name, arguments)) => succeeds(program(name).args(arguments)),
        None => false,
    }
}
