//! A temporary machine: every scope has its directory, and nothing is approved.

use std::fs;
use std::path::{Path, PathBuf};

use cocode_config::{
    Approval, Config, EditContext, Places, Server, State, TrustContent, TrustItem, TrustStore,
};

pub(crate) struct Room {
    _directory: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) places: Places,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap())
    }

    /// In memory where the system has files there: thousands of rooms wait long for a disk.
    pub(crate) fn quick() -> Self {
        let in_memory = tempfile::tempdir_in("/dev/shm");
        Self::within(in_memory.or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn within(directory: tempfile::TempDir) -> Self {
        let root = directory.path().canonicalize().unwrap();
        let work = root.join("work");
        for name in ["system", "user", "state", "work/.git"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let places = Places {
            system: root.join("system"),
            user: root.join("user"),
            state: root.join("state"),
            directory: Some(work),
            explicit: Vec::new(),
        };
        Self {
            _directory: directory,
            root,
            places,
        }
    }

    /// Writes a file, by its path in the room.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn load(&self) -> Config {
        self.load_with(&|_| None)
    }

    pub(crate) fn load_with(&self, variables: &dyn Fn(&str) -> Option<String>) -> Config {
        Config::load(&self.places, variables)
    }

    /// Approves every entry of a server that waits.
    pub(crate) fn approve(&self, name: &str) {
        let config = self.load();
        let mut store = TrustStore::load(self.places.approvals()).unwrap();
        let context = EditContext::new(self.places.locks());
        let server = server(&config, name);
        let others = server.others.iter().map(|(other, _)| other);
        for candidate in std::iter::once(&server.winner).chain(others) {
            let item = TrustItem {
                file: &candidate.found.origin.file,
                name,
                content: TrustContent::Server(&candidate.found.entry),
            };
            store
                .approve(&context, &item, Approval::Approved, 1)
                .unwrap();
        }
    }
}

#[track_caller]
pub(crate) fn server<'a>(config: &'a Config, name: &str) -> &'a Server {
    config
        .servers
        .get(name)
        .unwrap_or_else(|| panic!("{name} is there: {:?}", config.problems))
}

#[track_caller]
pub(crate) fn state(config: &Config, name: &str) -> &'static str {
    server(config, name).state.as_str()
}

/// The command and arguments of a server that is ready.
#[track_caller]
pub(crate) fn words(config: &Config, name: &str) -> Vec<String> {
    let State::Ready(spec) = &server(config, name).state else {
        panic!("{name} is {}", state(config, name));
    };
    let cocode_core::Reach::Program(program) = &spec.reach else {
        panic!("{name} is a program");
    };
    let args = program.args.iter().cloned();
    std::iter::once(program.command.clone())
        .chain(args)
        .collect()
}

/// The problems that are about a file.
pub(crate) fn about<'a>(config: &'a Config, file: &Path) -> Vec<&'a cocode_config::Problem> {
    let mut problems = config.all_problems();
    problems.retain(|problem| *problem.origin.file == *file);
    problems
}
