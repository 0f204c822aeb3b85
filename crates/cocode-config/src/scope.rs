//! Where configuration comes from: the scopes, the places they are kept at, and which of them
//! exist for a directory. The caller says where everything is; nothing here asks the environment.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::document::Format;

/// Where an entry comes from, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The organization: alone, if it says anything.
    Enterprise,
    /// A file named on the command line, instead of the scopes below.
    Explicit,
    /// This work tree, for this user alone.
    Local,
    /// This work tree, for everybody who has it.
    Project,
    /// This user, everywhere.
    User,
    /// A plugin that this user added.
    Plugin,
}

impl Scope {
    /// The name, as the command line has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enterprise => "enterprise",
            Self::Explicit => "file",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
        }
    }

    /// Whether its files come with a work tree, from wherever that came.
    pub fn needs_trust(self) -> bool {
        match self {
            Self::Local | Self::Project | Self::Plugin => true,
            Self::Enterprise | Self::Explicit | Self::User => false,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Where everything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The directory of the organization: `managed-mcp.toml`, `managed-mcp.json`, `policy.toml`, `config.toml`.
    pub system: PathBuf,
    /// The directory of the user: `mcp.toml`, `config.toml`, `plugins.toml`.
    pub user: PathBuf,
    /// What cocode keeps for itself: approvals, locks, backups.
    pub state: PathBuf,
    /// Where the user is: project files are looked for here and above.
    pub directory: Option<PathBuf>,
    /// Files named on the command line, the last one counting most.
    pub explicit: Vec<PathBuf>,
}

/// The local file of a work tree.
pub const LOCAL_FILE: &str = ".cocode.local.toml";
/// The project files of a work tree, ours first.
pub const PROJECT_FILES: [(&str, Format); 2] =
    [(".mcp.toml", Format::Toml), (".mcp.json", Format::Json)];
/// The settings of a project, and of one user's copy of it.
const PROJECT_SETTINGS: &str = ".cocode/config.toml";
const LOCAL_SETTINGS: &str = ".cocode/config.local.toml";

/// The deepest directory that is looked at.
const MAX_ANCESTORS: usize = 128;

impl Places {
    /// The files with the servers that the organization fixed, the more important first.
    pub fn managed(&self) -> [PathBuf; 2] {
        ["managed-mcp.toml", "managed-mcp.json"].map(|name| self.system.join(name))
    }

    /// What the organization allows.
    pub fn policy(&self) -> PathBuf {
        self.system.join("policy.toml")
    }

    /// The user's own servers.
    pub fn user_servers(&self) -> PathBuf {
        self.user.join("mcp.toml")
    }

    /// The user's own settings.
    pub fn user_settings(&self) -> PathBuf {
        self.user.join("config.toml")
    }

    /// The plugins that the user added.
    pub fn plugins(&self) -> PathBuf {
        self.user.join("plugins.toml")
    }

    /// What the user approved.
    pub fn approvals(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// Where locks are kept.
    pub fn locks(&self) -> PathBuf {
        self.state.join("locks")
    }

    /// Where copies are kept of files of other tools that we changed.
    pub fn backups(&self) -> PathBuf {
        self.state.join("backups")
    }

    /// The work tree around the directory: the nearest one above that is a repository, else the
    /// nearest that has files of ours, else the directory itself.
    pub fn work_tree(&self) -> Option<PathBuf> {
        let directory = self.directory.as_deref()?;
        let ancestors = || self.ancestors();
        let repository = ancestors().find(|ancestor| ancestor.join(".git").exists());
        let configured = || {
            ancestors().find(|ancestor| {
                let mut names = PROJECT_FILES.iter().map(|(name, _)| *name);
                ancestor.join(LOCAL_FILE).exists() || names.any(|name| ancestor.join(name).exists())
            })
        };
        let root = repository.or_else(configured).unwrap_or(directory);
        Some(root.to_owned())
    }

    /// The directory and those above it, nearest first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &Path> {
        let directory = self.directory.iter();
        directory.flat_map(|directory| directory.ancestors().take(MAX_ANCESTORS))
    }

    /// The directory and those above it within the work tree, nearest first.
    fn project_directories(&self) -> Vec<PathBuf> {
        let Some(root) = self.work_tree() else {
            return Vec::new();
        };
        let within = self
            .ancestors()
            .take_while(|ancestor| ancestor.starts_with(&root));
        within.map(Path::to_owned).collect()
    }

    /// The files that may have servers, the most important first. Those of plugins and of the
    /// organization are not among them.
    pub(crate) fn server_files(&self) -> Vec<Place> {
        if !self.explicit.is_empty() {
            let files = self.explicit.iter().rev();
            return files
                .map(|file| Place::new(Scope::Explicit, file.clone(), format_of(file)))
                .collect();
        }
        let directories = self.project_directories();
        let mut files = Vec::new();
        for directory in &directories {
            let local = directory.join(LOCAL_FILE);
            files.push(Place::new(Scope::Local, local, Format::Toml));
        }
        for directory in &directories {
            for (name, format) in PROJECT_FILES {
                files.push(Place::new(Scope::Project, directory.join(name), format));
            }
        }
        files.push(Place::new(Scope::User, self.user_servers(), Format::Toml));
        files
    }

    /// The files that may have settings, the most important first.
    pub(crate) fn settings_files(&self) -> Vec<Place> {
        let toml = |scope, path| Place::new(scope, path, Format::Toml);
        let mut files = vec![toml(Scope::Enterprise, self.system.join("config.toml"))];
        if !self.explicit.is_empty() {
            let explicit = self.explicit.iter().rev();
            let explicit = explicit.filter(|file| format_of(file) == Format::Toml);
            files.extend(explicit.map(|file| toml(Scope::Explicit, file.clone())));
            return files;
        }
        if let Some(root) = self.work_tree() {
            let in_tree = [
                toml(Scope::Local, root.join(LOCAL_SETTINGS)),
                toml(Scope::Project, root.join(PROJECT_SETTINGS)),
            ];
            // The user's home may be a work tree, and the user's own file is never somebody else's.
            let is_foreign = |place: &Place| place.path != self.user_settings();
            files.extend(in_tree.into_iter().filter(is_foreign));
        }
        files.push(toml(Scope::User, self.user_settings()));
        files
    }

    /// The file that a scope's settings are written to, if the scope has one here.
    pub fn settings_file(&self, scope: Scope) -> Option<PathBuf> {
        let in_tree = |name: &str| self.work_tree().map(|root| root.join(name));
        match scope {
            Scope::Local => in_tree(LOCAL_SETTINGS),
            Scope::Project => in_tree(PROJECT_SETTINGS),
            Scope::User => Some(self.user_settings()),
            Scope::Explicit => {
                let mut files = self.explicit.iter().rev();
                files.find(|file| format_of(file) == Format::Toml).cloned()
            }
            Scope::Enterprise | Scope::Plugin => None,
        }
    }

    /// The files that settings are looked for in, the most important first.
    pub fn settings_paths(&self) -> Vec<(Scope, PathBuf)> {
        let files = self.settings_files().into_iter();
        files.map(|place| (place.scope, place.path)).collect()
    }

    /// The file that a scope's servers are written to, if the scope has one here.
    pub fn servers_file(&self, scope: Scope) -> Option<PathBuf> {
        let in_tree = |name: &str| self.work_tree().map(|root| root.join(name));
        match scope {
            Scope::Local => in_tree(LOCAL_FILE),
            Scope::Project => in_tree(PROJECT_FILES.first().map_or("", |(name, _)| *name)),
            Scope::User => Some(self.user_servers()),
            Scope::Explicit => self.explicit.last().cloned(),
            Scope::Enterprise | Scope::Plugin => None,
        }
    }
}

/// A file that may exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) scope: Scope,
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

impl Place {
    pub(crate) fn new(scope: Scope, path: PathBuf, format: Format) -> Self {
        Self {
            scope,
            path,
            format,
        }
    }
}

/// The language of a file, by its name.
pub fn format_of(path: &Path) -> Format {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("json" | "jsonc") => Format::Json,
        _ => Format::Toml,
    }
}
