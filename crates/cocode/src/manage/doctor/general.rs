//! What is examined once for all servers: files, approvals, policy, where secrets are kept, and the sandbox.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use cocode_config::{Config, FileReport, Problem, TrustStore};
use cocode_process::{Support, confinement_support};

use super::check::Check;
use crate::error::{CliError, Code};
use crate::stores;
use crate::workspace::{Workspace, told, with_problems};

/// How long the keyring may take to answer.
const STORE_LIMIT: Duration = Duration::from_secs(5);
/// Bits of a mode by which others than the owner may read or change a file.
const OTHERS_READ: u32 = 0o044;
const OTHERS_WRITE: u32 = 0o022;
/// Pieces of names that tell values which should not be seen.
const SECRET_NAMES: [&str; 7] = [
    "token",
    "secret",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "authorization",
];

pub(super) async fn examine(config: &Config, workspace: &Workspace) -> Vec<Check> {
    let mut checks = vec![home(workspace)];
    checks.extend(files(config));
    checks.push(approvals(config, workspace));
    checks.push(policy(config, workspace));
    checks.push(store(workspace).await);
    checks.push(sandbox(confinement_support()));
    checks.extend(written_out(config));
    checks
}

/// The sandbox of this system, and what it does not prevent.
fn sandbox(support: Support) -> Check {
    if let Err(error) = support.check() {
        return Check::warning("sandbox", error.to_string());
    }
    let gaps = support.gaps().into_iter();
    let gaps: Vec<String> = gaps
        .map(|gap| format!("programs in it can {gap}"))
        .collect();
    if gaps.is_empty() {
        Check::ok("sandbox", support.to_string())
    } else {
        Check::warning("sandbox", support.to_string()).details(gaps)
    }
}

/// The directories that everything is kept in.
fn home(workspace: &Workspace) -> Check {
    let places = &workspace.places;
    let by_variable = workspace.environment.homes.cocode.is_some();
    for directory in [&places.user, &places.state] {
        match fs::metadata(directory) {
            Ok(metadata) if !metadata.is_dir() => {
                let message = format!("{} is not a directory", directory.display());
                let hint = if by_variable {
                    "COCODE_HOME has to name a directory"
                } else {
                    "move the file away; a directory is made when it is needed"
                };
                return Check::failed("home", CliError::new(Code::FileError, message).hint(hint));
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Check::failed("home", CliError::file("look into", directory, &error));
            }
            Ok(_) | Err(_) => {}
        }
    }
    let user = places.user.display();
    let why = if by_variable { ", by COCODE_HOME" } else { "" };
    let missing = if places.user.is_dir() {
        ""
    } else {
        "; made when it is needed"
    };
    Check::ok("home", format!("{user}{why}{missing}"))
}

/// Every file that is there, and every one that something is wrong with.
fn files(config: &Config) -> Vec<Check> {
    let plugins = config.plugins.iter().flat_map(|plugin| &plugin.problems);
    let mut wrong: BTreeMap<&Path, Vec<&Problem>> = BTreeMap::new();
    for problem in config.problems.iter().chain(plugins) {
        wrong.entry(&problem.origin.file).or_default().push(problem);
    }
    let mut checks = Vec::new();
    for report in config.files.iter().filter(|file| file.exists) {
        let problems = wrong.remove(&*report.path).unwrap_or_default();
        checks.push(file(&described(report), &problems));
    }
    // Settings, lists of plugins, approvals: only worth a line if something is wrong.
    for (path, problems) in wrong {
        checks.push(file(&path.display().to_string(), &problems));
    }
    if let Some(managed) = &config.managed_by {
        let message = format!("all servers are fixed by {}", managed.display());
        checks.push(Check::ok("file", message));
    }
    for pending in &config.pending_settings {
        let message = format!(
            "{} waits for approval and is not used",
            pending.path.display()
        );
        let check = Check::warning("file", message);
        checks.push(check.hint("`cocode mcp trust` shows it and asks"));
    }
    checks
}

fn described(report: &FileReport) -> String {
    let FileReport {
        scope,
        path,
        exists: _,
        servers,
    } = report;
    let servers = match servers {
        1 => "1 server".to_owned(),
        n_servers => format!("{n_servers} servers"),
    };
    format!("{} ({scope} scope, {servers})", path.display())
}

fn file(shown: &str, problems: &[&Problem]) -> Check {
    if problems.is_empty() {
        return Check::ok("file", shown);
    }
    if problems.iter().any(|problem| problem.is_error()) {
        let error = CliError::new(Code::InvalidConfig, format!("{shown} is not in order"));
        return Check::failed("file", with_problems(error, problems));
    }
    Check::warning("file", shown).details(problems.iter().map(|problem| told(problem)))
}

fn approvals(config: &Config, workspace: &Workspace) -> Check {
    let path = workspace.places.approvals();
    let is_broken = config
        .problems
        .iter()
        .any(|problem| *problem.origin.file == *path);
    if is_broken {
        return Check::warning(
            "approvals",
            "none can be read, so everything waits for approval",
        );
    }
    if let Some(mode) = mode(&path).filter(|mode| mode & OTHERS_WRITE != 0) {
        let shown = path.display();
        return Check::warning(
            "approvals",
            format!("others may write to {shown}, and so approve servers (mode {mode:o})"),
        )
        .hint(format!("`chmod 600 {shown}`"));
    }
    match TrustStore::load(&path) {
        Ok(store) => Check::ok(
            "approvals",
            match store.decisions().count() {
                0 => "nothing was decided yet".to_owned(),
                1 => format!("1 decision in {}", path.display()),
                n_decisions => format!("{n_decisions} decisions in {}", path.display()),
            },
        ),
        Err(error) => Check::failed(
            "approvals",
            CliError::new(Code::FileError, "the approvals cannot be read").because(&error),
        ),
    }
}

fn policy(config: &Config, workspace: &Workspace) -> Check {
    let file = workspace.places.policy();
    let shown = file.display();
    if config.policy.is_broken() {
        let message = format!("{shown} cannot be used, so every server is blocked");
        let problems: Vec<&Problem> = config.policy.problems().iter().collect();
        let error = CliError::new(Code::InvalidConfig, message);
        return Check::failed("policy", with_problems(error, &problems));
    }
    let message = if config.policy.is_present() {
        shown.to_string()
    } else {
        "there is none".to_owned()
    };
    let warnings = config.policy_warnings();
    if warnings.is_empty() {
        return Check::ok("policy", message);
    }
    Check::warning("policy", message).details(warnings.iter().map(told))
}

/// Where secrets are kept, and whether that can be read. No secret is looked up.
async fn store(workspace: &Workspace) -> Check {
    let store = match stores::secrets(workspace) {
        Ok(store) => store,
        Err(error) => return Check::failed("secrets", error),
    };
    let examined = async {
        let listed = store.list().await;
        listed.map(|secrets| secrets.len()).map_err(|error| {
            CliError::new(Code::FileError, "the file of secrets cannot be used").because(&error)
        })
    };
    let both = async { tokio::join!(examined, store.describe()) };
    let Ok((listed, description)) = tokio::time::timeout(STORE_LIMIT, both).await else {
        return Check::warning("secrets", "the system keyring does not answer")
            .hint("`credential_store = \"file\"` in config.toml does without it");
    };
    match listed {
        Ok(n_secrets) => {
            let description = stores::told(&description, workspace);
            Check::ok("secrets", format!("{n_secrets} kept; {description}"))
        }
        Err(error) => Check::failed("secrets", error),
    }
}

/// Files that others may read and that have values which look like secrets, written out.
fn written_out(config: &Config) -> Vec<Check> {
    let mut found: BTreeMap<&Path, Vec<String>> = BTreeMap::new();
    for (name, server) in &config.servers {
        let others = server.others.iter().map(|(other, _)| other);
        for candidate in std::iter::once(&server.winner).chain(others) {
            let lines = candidate.found.entry.lines().into_iter();
            let secret = lines.filter(|line| line.is_secret && sounds_secret(&line.key));
            let of_file = found.entry(&candidate.found.origin.file).or_default();
            of_file.extend(secret.map(|line| format!("`{}` of server `{name}`", line.key)));
        }
    }
    let readable = found.into_iter().filter_map(|(path, secrets)| {
        let mode = mode(path).filter(|mode| mode & OTHERS_READ != 0)?;
        if secrets.is_empty() {
            return None;
        }
        let shown = path.display();
        let message =
            format!("others may read {shown} (mode {mode:o}), which seems to have secrets in it");
        Some(
            Check::warning("privacy", message)
                .details(secrets)
                .hint("keep them with `cocode secret set NAME` and write `keyring:NAME` instead")
                .hint(format!("or `chmod 600 {shown}`")),
        )
    });
    readable.collect()
}

fn sounds_secret(key: &str) -> bool {
    let key = key.to_lowercase().replace('-', "_");
    SECRET_NAMES.iter().any(|name| key.contains(name))
}

fn mode(path: &Path) -> Option<u32> {
    let metadata = fs::metadata(path).ok()?;
    Some(metadata.permissions().mode() & 0o777)
}

#[cfg(test)]
mod tests {
    use super::super::check::Outcome;
    use super::{Support, sandbox};

    #[test]
    fn every_gap_of_the_sandbox_is_a_warning() {
        for (abi, gaps) in [(3, 2), (4, 2), (5, 1), (6, 0)] {
            let check = sandbox(Support::Landlock { abi });
            assert_eq!(check.details.len(), gaps, "{abi}");
            assert_eq!(check.outcome == Outcome::Ok, gaps == 0, "{abi}");
        }
        let missing = sandbox(Support::Missing);
        assert!(missing.message.contains("no Landlock"), "{missing:?}");
    }
}
