//! What a command works in: the environment, the places of configuration, and the configuration
//! itself, read when somebody needs it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cocode_config::{Config, EditContext, Kept, Live, Places, Problem, Watcher};
use tokio::sync::mpsc;

use crate::admission::Admissions;
use crate::args::govern::CredentialStoreArg;
use crate::args::{ConfigArgs, OutputArgs};
use crate::environment::Environment;
use crate::error::{CliError, Code};
use crate::printer::Printer;
use crate::sharing;

/// Where an organization keeps what it fixes. Nothing on the command line and no variable moves
/// it: who could, could escape it.
fn system_directory(os: &str) -> &'static str {
    match os {
        "macos" => "/Library/Application Support/cocode",
        _ => "/etc/cocode",
    }
}

/// Everything that commands share.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) environment: Environment,
    pub(crate) printer: Arc<Printer>,
    pub(crate) output: OutputArgs,
    pub(crate) places: Places,
    /// Where credentials are kept, whatever the configuration says.
    pub(crate) store: Option<CredentialStoreArg>,
    strict: bool,
    config: OnceLock<Config>,
    admissions: OnceLock<Arc<Admissions>>,
}

impl Workspace {
    pub(crate) fn new(
        environment: Environment,
        printer: Arc<Printer>,
        output: OutputArgs,
        args: &ConfigArgs,
    ) -> Result<Self, CliError> {
        let directory = std::env::current_dir().ok();
        Self::at(directory, environment, printer, output, args)
    }

    /// What a command in this directory works in.
    pub(crate) fn at(
        directory: Option<PathBuf>,
        environment: Environment,
        printer: Arc<Printer>,
        output: OutputArgs,
        args: &ConfigArgs,
    ) -> Result<Self, CliError> {
        let absolute = |path: &PathBuf| match &directory {
            Some(directory) => directory.join(path),
            None => path.clone(),
        };
        let homes = environment.homes.clone();
        let (user, state) = homes.of_cocode(directory.as_deref()).ok_or_else(|| {
            CliError::new(Code::SetupFailed, "there is no home directory")
                .hint("set HOME, or COCODE_HOME to the directory that configuration is kept in")
        })?;
        let places = Places {
            system: PathBuf::from(system_directory(std::env::consts::OS)),
            user,
            state,
            explicit: args.config.iter().map(absolute).collect(),
            directory,
        };
        Ok(Self {
            environment,
            printer,
            output,
            places,
            store: None,
            strict: args.strict_config,
            config: OnceLock::new(),
            admissions: OnceLock::new(),
        })
    }

    /// The same place for a command that is given now: the configuration is read when that needs it, and
    /// what lets us in at servers stays shared.
    #[must_use]
    pub(crate) fn anew(&self) -> Self {
        // Without them, whoever needs them finds out why.
        let admissions = self.admissions().ok().cloned();
        Self {
            environment: self.environment.clone(),
            printer: Arc::clone(&self.printer),
            output: self.output.clone(),
            places: self.places.clone(),
            store: self.store,
            strict: self.strict,
            config: OnceLock::new(),
            admissions: admissions.map(OnceLock::from).unwrap_or_default(),
        }
    }

    /// Whether anything wrong is an error.
    pub(crate) fn is_strict(&self) -> bool {
        self.strict
    }

    /// With credentials kept where the command line says.
    #[must_use]
    pub(crate) fn with_store(mut self, store: Option<CredentialStoreArg>) -> Self {
        self.store = store;
        self
    }

    /// What lets us in at servers, shared by everything that this command does.
    pub(crate) fn admissions(&self) -> Result<&Arc<Admissions>, CliError> {
        if let Some(made) = self.admissions.get() {
            return Ok(made);
        }
        let made = Arc::new(Admissions::new(self)?);
        Ok(self.admissions.get_or_init(|| made))
    }

    /// What was renewed is stored, before the program ends.
    pub(crate) async fn settle(&self) {
        if let Some(admissions) = self.admissions.get() {
            admissions.settle().await;
        }
    }

    /// The configuration. With `--strict-config`, anything wrong in it is an error.
    pub(crate) fn config(&self) -> Result<&Config, CliError> {
        let config = self.config.get_or_init(|| self.reloaded());
        if self.strict {
            let problems = config.all_problems();
            if !problems.is_empty() {
                let message = "the configuration is not in order, and --strict-config is given";
                return Err(with_problems(
                    CliError::new(Code::InvalidConfig, message),
                    &problems,
                ));
            }
        }
        // A file that was asked for by name and cannot be used is never passed over.
        let missing: Vec<&Problem> = config
            .problems
            .iter()
            .filter(|problem| problem.is_error() && problem.server.is_none())
            .filter(|problem| {
                self.places
                    .explicit
                    .iter()
                    .any(|file| **file == *problem.origin.file)
            })
            .collect();
        if missing.is_empty() {
            return Ok(config);
        }
        let error = CliError::new(
            Code::InvalidConfig,
            "the file given by --config cannot be used",
        );
        Err(with_problems(error, &missing))
    }

    /// The configuration as it is now, after it was changed.
    pub(crate) fn reloaded(&self) -> Config {
        let variables = &self.environment.variables;
        Config::load(&self.places, &|name: &str| variables.text(name))
    }

    /// The names of the variables that the entries of all servers name or refer to, approved or not.
    pub(crate) fn named_variables(&self) -> BTreeSet<String> {
        let asked = RefCell::new(BTreeSet::new());
        let variables = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            self.environment.variables.text(name)
        };
        let config = Config::load(&self.places, &variables);
        let mut named = BTreeSet::new();
        for server in config.servers.values() {
            let others = server.others.iter().map(|(other, _)| other);
            for candidate in others.chain([&server.winner]) {
                // What is wrong with an entry is said by whoever uses it.
                if let Ok(spec) = candidate.specify(&variables) {
                    let names = sharing::named_variables(&spec).into_iter();
                    named.extend(names.map(str::to_owned));
                }
            }
        }
        named.append(&mut asked.borrow_mut());
        named
    }

    /// The configuration as it is now, for whoever reads it again and again.
    pub(crate) fn live(&self) -> Live {
        let variables = self.environment.variables.clone();
        Live::new(self.places.clone(), move |name| variables.text(name))
    }

    /// Watches the files of configuration, for as long as the watcher is held.
    pub(crate) fn watch(&self) -> Result<(Watcher, mpsc::Receiver<()>), CliError> {
        // One change that waits to be read is as good as many.
        let (changed, changes) = mpsc::channel(1);
        let watcher = Watcher::start(self.places.clone(), move || {
            let _one_waits_already = changed.try_send(());
        });
        let watcher = watcher.map_err(|error| {
            CliError::new(Code::SetupFailed, "the configuration cannot be watched").because(&error)
        })?;
        Ok((watcher, changes))
    }

    /// Warns of what is wrong with files as a whole, which may hide what the user looks for.
    pub(crate) fn warn_of_files(&self, config: &Config) {
        let plugins = config.plugins.iter().flat_map(|plugin| &plugin.problems);
        for problem in config
            .problems
            .iter()
            .chain(config.policy.problems())
            .chain(plugins)
        {
            self.warn(problem);
        }
    }

    /// Warns of one thing.
    pub(crate) fn warn(&self, problem: &Problem) {
        self.printer.warn(&told(problem));
    }

    /// What edits need.
    pub(crate) fn edits(&self) -> EditContext {
        EditContext::new(self.places.locks())
    }
}

/// A problem and what to do about it, in one line.
pub(crate) fn told(problem: &Problem) -> String {
    match &problem.hint {
        Some(hint) => format!("{problem} ({hint})"),
        None => problem.to_string(),
    }
}

/// What is wrong with files that were in order before. What goes on as it was because of that says what
/// is wrong itself.
pub(crate) fn told_after<'a>(
    problems: impl IntoIterator<Item = &'a Problem>,
    kept: &[Kept],
) -> Vec<String> {
    let is_told = |problem: &Problem| kept.iter().any(|kept| kept.because == *problem);
    let problems = problems.into_iter();
    problems
        .filter(|problem| !is_told(problem))
        .map(told)
        .collect()
}

/// Adds problems to an error, as causes.
pub(crate) fn with_problems(mut error: CliError, problems: &[&Problem]) -> CliError {
    for problem in problems {
        error.causes.push(problem.to_string());
        error.hints.extend(problem.hint.clone());
    }
    error.hints.dedup();
    error
}

#[cfg(test)]
mod tests {
    use super::system_directory;

    #[test]
    fn macos_has_its_own_system_directory() {
        assert_eq!(system_directory("linux"), "/etc/cocode");
        let macos = "/Library/Application Support/cocode";
        assert_eq!(system_directory("macos"), macos);
    }
}
