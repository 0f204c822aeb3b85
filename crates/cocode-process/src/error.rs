//! Why a program could not be started.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::confinement::ConfineError;
use crate::guard;
use crate::spec::ProcessSpec;

/// Where a program is searched when its environment has no `PATH`.
const DEFAULT_SEARCH_PATH: &str = "/bin:/usr/bin";

/// Why a program could not be started. No process is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such program.
    #[error("{}", not_found_message(program, *lookup))]
    NotFound {
        /// The program as it was asked for.
        program: OsString,
        /// Where it was looked for.
        lookup: ProgramLookup,
    },
    /// The program is a script whose first line names an interpreter that does not exist, or a
    /// binary for a loader that does not exist.
    #[error("the interpreter or loader that program `{}` needs does not exist", path.display())]
    InterpreterMissing {
        /// The file that was found.
        path: PathBuf,
    },
    /// The program is there, but may not be executed.
    #[error("program `{}` is not executable", path.display())]
    NotExecutable {
        /// The file that was found.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The working directory is missing, is no directory, or may not be entered.
    #[error("cannot enter the working directory `{}`", path.display())]
    WorkingDirectory {
        /// The directory as it was asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A pipe to the child could not be made or watched.
    #[error("cannot set up the {stream} pipe of program `{}`", program.display())]
    Pipe {
        /// The program as it was asked for.
        program: OsString,
        /// Which pipe.
        stream: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The process itself could not be made: a limit was reached, or an argument or variable
    /// cannot be passed on.
    #[error("cannot create a process for program `{}`", program.display())]
    Process {
        /// The program as it was asked for.
        program: OsString,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The program is to be confined, and cannot be.
    #[error("cannot start program `{}` in a sandbox", program.display())]
    Confinement {
        /// The program as it was asked for.
        program: OsString,
        /// Why not.
        #[source]
        source: ConfineError,
    },
    /// There is no tokio runtime to watch the child.
    #[error("cannot start a process outside a tokio runtime")]
    NoRuntime(#[source] tokio::runtime::TryCurrentError),
}

/// Where a program was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramLookup {
    /// Its name has no slash: in the directories of the `PATH` of its environment.
    SearchPath,
    /// At the given path only.
    AsGiven,
}

impl SpawnError {
    pub(crate) fn pipe(spec: &ProcessSpec, stream: &'static str) -> impl FnOnce(io::Error) -> Self {
        let program = spec.program.clone();
        move |source| Self::Pipe {
            program,
            stream,
            source,
        }
    }

    pub(crate) fn confinement(spec: &ProcessSpec) -> impl FnOnce(ConfineError) -> Self {
        let program = spec.program.clone();
        move |source| Self::Confinement { program, source }
    }

    /// Finds out what an error of `fork`, `chdir` or `execvp` was about. The system gives one
    /// error number for all of them, so this looks at the files once more.
    pub(crate) fn classify(spec: &ProcessSpec, source: io::Error) -> Self {
        if let Some(refused) = guard::refused_confinement(&source) {
            return Self::confinement(spec)(ConfineError::Rules(refused));
        }
        let about_files = matches!(
            source.raw_os_error(),
            Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES | libc::EPERM | libc::ENOEXEC)
        );
        if !about_files {
            return Self::Process {
                program: spec.program.clone(),
                source,
            };
        }
        // The dot makes the system check that the directory may be entered, not only seen.
        if let Some(cwd) = &spec.cwd
            && let Err(source) = std::fs::metadata(cwd.join("."))
        {
            return Self::WorkingDirectory {
                path: cwd.clone(),
                source,
            };
        }
        // A search also ends in EACCES when one directory of PATH is closed to us, so the error
        // number alone does not tell a missing program from a forbidden one.
        match find_program(spec) {
            None => Self::NotFound {
                program: spec.program.clone(),
                lookup: lookup(&spec.program),
            },
            Some(path) if source.raw_os_error() == Some(libc::ENOENT) => {
                Self::InterpreterMissing { path }
            }
            Some(path) => Self::NotExecutable { path, source },
        }
    }
}

fn not_found_message(program: &OsStr, lookup: ProgramLookup) -> String {
    match lookup {
        ProgramLookup::SearchPath => format!("program `{}` is not in PATH", program.display()),
        ProgramLookup::AsGiven => format!("program `{}` does not exist", program.display()),
    }
}

fn lookup(program: &OsStr) -> ProgramLookup {
    if program.as_bytes().contains(&b'/') {
        ProgramLookup::AsGiven
    } else {
        ProgramLookup::SearchPath
    }
}

fn find_program(spec: &ProcessSpec) -> Option<PathBuf> {
    let base = spec.cwd.as_deref().unwrap_or(Path::new(""));
    let candidates = match lookup(&spec.program) {
        ProgramLookup::AsGiven => vec![base.join(&spec.program)],
        ProgramLookup::SearchPath if spec.program.is_empty() => Vec::new(),
        ProgramLookup::SearchPath => {
            let search_path = spec
                .env
                .iter()
                .rfind(|(name, _)| name == "PATH")
                .map_or(OsStr::new(DEFAULT_SEARCH_PATH), |(_, value)| value);
            std::env::split_paths(search_path)
                .map(|directory| base.join(directory).join(&spec.program))
                .collect()
        }
    };
    candidates.into_iter().find(|candidate| candidate.exists())
}
