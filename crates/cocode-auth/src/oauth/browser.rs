//! Whether a browser can be opened here, by which program, and the opening itself.
//!
//! The `webbrowser` crate would do this too, but it reads the environment of the process by itself,
//! knows neither ssh nor CI, and does not tell whether it worked. All that it takes is a table.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;
use url::Url;

/// How long a program may take to fail. One that is still there is the browser itself.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

/// Programs that open addresses in the browser of the user, best first, with their arguments.
const OPENERS: [(&str, &[&str]); 4] = [
    ("xdg-open", &[]),
    ("gio", &["open"]),
    ("x-www-browser", &[]),
    ("sensible-browser", &[]),
];

/// Opens addresses in the browser of Windows.
const WINDOWS_OPENER: &str = "wslview";

/// Belongs to macOS.
const MAC_OPENER: &str = "/usr/bin/open";

/// Browsers that need the terminal, which is not theirs: we wait there for a paste.
const TEXT_BROWSERS: [&str; 8] = [
    "browsh",
    "carbonyl",
    "elinks",
    "links",
    "links2",
    "lynx",
    "w3m",
    "www-browser",
];

/// What matters about the place where we run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserFacts {
    /// Under which system.
    pub system: System,
    /// The variable `BROWSER`: programs, separated by colons, with `%s` for the address.
    pub browser: Option<String>,
    /// Whether the user sits at another machine.
    pub ssh: bool,
    /// Whether there are windows. macOS has them always.
    pub display: bool,
    /// Whether nobody sits anywhere.
    pub ci: bool,
    /// The programs that were found.
    pub programs: Vec<String>,
}

/// A system with its own way to open addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// macOS.
    Mac,
    /// Linux inside of Windows.
    Wsl,
    /// Linux, and whatever else follows freedesktop.org.
    Free,
}

impl BrowserFacts {
    /// Looks at these variables, and for programs in the directories of their `PATH`.
    pub fn gather(environment: &[(OsString, OsString)]) -> Self {
        let variable = |wanted: &str| {
            environment
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, value)| value.as_os_str())
        };
        let said = |wanted: &str| variable(wanted).is_some_and(|value| !value.is_empty());
        let system = if cfg!(target_os = "macos") {
            System::Mac
        } else if said("WSL_DISTRO_NAME") || said("WSL_INTEROP") {
            System::Wsl
        } else {
            System::Free
        };
        let path = variable("PATH").unwrap_or(OsStr::new("/usr/bin:/bin"));
        Self {
            system,
            browser: variable("BROWSER").map(|value| value.to_string_lossy().into_owned()),
            ssh: said("SSH_CONNECTION") || said("SSH_TTY") || said("SSH_CLIENT"),
            display: said("DISPLAY") || said("WAYLAND_DISPLAY"),
            ci: said("CI") && variable("CI") != Some(OsStr::new("false")),
            programs: OPENERS
                .into_iter()
                .map(|(program, _)| program)
                .chain([WINDOWS_OPENER])
                .filter(|program| is_in(program, path))
                .map(str::to_owned)
                .collect(),
        }
    }
}

fn is_in(program: &str, path: &OsStr) -> bool {
    std::env::split_paths(path)
        .map(|directory| directory.join(program))
        .any(|file| is_executable(&file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What to do with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowserPlan {
    /// Open it with the first of these that works.
    Open(Vec<BrowserCommand>),
    /// Only show it.
    Show(NoBrowser),
}

/// Why no browser is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoBrowser {
    /// `BROWSER` is empty or `none`.
    #[error("the variable BROWSER turns it off")]
    TurnedOff,
    /// The browser of this machine is not the one of the user.
    #[error("this is an ssh session")]
    Ssh,
    /// Nobody would see it.
    #[error("this is a CI job")]
    Ci,
    /// There is nothing to see it on.
    #[error("there is no display")]
    NoDisplay,
    /// Nothing here opens addresses.
    #[error("there is no program that opens addresses, such as xdg-open")]
    NoProgram,
}

/// A program that opens addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserCommand {
    program: String,
    /// With `%s` where the address belongs.
    arguments: Vec<String>,
}

/// Decides by the place where we run. What `BROWSER` says counts before everything else: editors
/// set it in ssh sessions and containers to a program that reaches the user's own machine.
pub fn plan(facts: &BrowserFacts) -> BrowserPlan {
    if let Some(browser) = &facts.browser {
        if matches!(browser.trim(), "" | "none" | "NONE" | "false") {
            return BrowserPlan::Show(NoBrowser::TurnedOff);
        }
        let commands: Vec<_> = browser
            .split(':')
            .filter_map(BrowserCommand::parse)
            .filter(|command| !command.needs_terminal())
            .collect();
        if !commands.is_empty() {
            return BrowserPlan::Open(commands);
        }
    }
    if facts.ci {
        return BrowserPlan::Show(NoBrowser::Ci);
    }
    if facts.ssh {
        return BrowserPlan::Show(NoBrowser::Ssh);
    }
    let free = OPENERS
        .into_iter()
        .filter(|_| facts.display)
        .map(|(program, arguments)| BrowserCommand::new(program, arguments));
    let there = |command: &BrowserCommand| facts.programs.contains(&command.program);
    let commands: Vec<_> = match facts.system {
        System::Mac => vec![BrowserCommand::new(MAC_OPENER, &[])],
        System::Wsl => std::iter::once(BrowserCommand::new(WINDOWS_OPENER, &[]))
            .chain(free)
            .filter(there)
            .collect(),
        System::Free if !facts.display => return BrowserPlan::Show(NoBrowser::NoDisplay),
        System::Free => free.filter(there).collect(),
    };
    if commands.is_empty() {
        return BrowserPlan::Show(NoBrowser::NoProgram);
    }
    BrowserPlan::Open(commands)
}

impl BrowserCommand {
    fn new(program: &str, arguments: &[&str]) -> Self {
        Self {
            program: program.to_owned(),
            arguments: arguments
                .iter()
                .copied()
                .chain(["%s"])
                .map(str::to_owned)
                .collect(),
        }
    }

    /// One entry of `BROWSER`. No shell reads it: it is words and nothing else.
    fn parse(entry: &str) -> Option<Self> {
        let mut words = entry.split_whitespace().filter(|word| *word != "&");
        let program = words.next()?.to_owned();
        let mut arguments: Vec<String> = words.map(str::to_owned).collect();
        if !arguments.iter().any(|argument| argument.contains("%s")) {
            arguments.push("%s".to_owned());
        }
        Some(Self { program, arguments })
    }

    fn needs_terminal(&self) -> bool {
        Path::new(&self.program)
            .file_name()
            .and_then(OsStr::to_str)
            .is_some_and(|name| TEXT_BROWSERS.contains(&name))
    }

    fn arguments(&self, url: &Url) -> Vec<String> {
        self.arguments
            .iter()
            .map(|argument| argument.replace("%s", url.as_str()))
            .collect()
    }
}

/// Why no browser opened. Never shows the address, which holds the state of a sign-in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// It is not an address of the web: it could start any program.
    #[error("refused to open an address of the scheme `{scheme}`")]
    Scheme {
        /// Which.
        scheme: String,
    },
    /// Nothing worked.
    #[error("no browser opened: {}", told(attempts))]
    Failed {
        /// All that was tried.
        attempts: Vec<Attempt>,
    },
}

/// A program that did not open an address.
#[derive(Debug)]
pub struct Attempt {
    /// Which.
    pub program: String,
    /// What happened.
    pub outcome: Outcome,
}

/// How a program failed to open an address.
#[derive(Debug)]
pub enum Outcome {
    /// It did not start.
    NotStarted(io::Error),
    /// It ended badly.
    Ended(ExitStatus),
}

impl fmt::Display for Attempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, outcome } = self;
        match outcome {
            Outcome::NotStarted(error) => write!(formatter, "`{program}` did not start ({error})"),
            Outcome::Ended(status) => write!(formatter, "`{program}` ended with {status}"),
        }
    }
}

fn told(attempts: &[Attempt]) -> String {
    let attempts: Vec<String> = attempts.iter().map(ToString::to_string).collect();
    attempts.join(", ")
}

/// Opens an address with the first program that works. Waits until it has ended well, or has run
/// for so long that it is the browser itself.
///
/// The address is an argument of that program, so that other users of the machine can see it while
/// it runs, with the state in it; that is how browsers are opened. It holds neither a code nor
/// anything that redeems one.
///
/// Dropping the future leaves the program alone.
pub async fn open(
    commands: &[BrowserCommand],
    url: &Url,
    environment: &[(OsString, OsString)],
) -> Result<(), BrowserError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(BrowserError::Scheme {
            scheme: url.scheme().to_owned(),
        });
    }
    let mut attempts = Vec::new();
    for command in commands {
        match command.run(url, environment).await {
            Ok(()) => return Ok(()),
            Err(outcome) => attempts.push(Attempt {
                program: command.program.clone(),
                outcome,
            }),
        }
    }
    Err(BrowserError::Failed { attempts })
}

impl BrowserCommand {
    async fn run(&self, url: &Url, environment: &[(OsString, OsString)]) -> Result<(), Outcome> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a browser must outlive us, and a guarded child would die with us"
        )]
        let mut command = Command::new(&self.program);
        command
            .args(self.arguments(url))
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The interrupt that ends us at the terminal is not for the browser.
            .process_group(0);
        let mut child = command.spawn().map_err(Outcome::NotStarted)?;
        match timeout(SETTLE_LIMIT, child.wait()).await {
            Ok(Ok(status)) if !status.success() => Err(Outcome::Ended(status)),
            Ok(Ok(_success)) => Ok(()),
            Ok(Err(error)) => {
                // A host that ignores SIGCHLD makes this fail; the program ran all the same.
                tracing::debug!(%error, program = self.program, "cannot wait for a browser");
                Ok(())
            }
            // The runtime reaps it when it ends.
            Err(_elapsed) => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "browser_tests.rs"]
mod tests;
