//! Where other tools keep their servers.

use std::path::{Path, PathBuf};

use super::Tool;

/// The directories that a caller looked up. Nothing here reads the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomePlaces {
    /// The home directory.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, or else `~/.config`; on macOS too.
    pub config: PathBuf,
    /// Where desktop programs keep their settings: `~/Library/Application Support` on macOS, the
    /// same as [`Self::config`] elsewhere.
    pub applications: PathBuf,
    /// The root of the project, if there is one, without symbolic links: Claude Code keeps local
    /// servers under this path.
    pub project: Option<PathBuf>,
    /// `$CLAUDE_CONFIG_DIR`, if it is set.
    pub claude_config: Option<PathBuf>,
    /// `$CODEX_HOME`, if it is set.
    pub codex_home: Option<PathBuf>,
    /// `$OPENCODE_CONFIG`, if it is set: a file.
    pub opencode_config: Option<PathBuf>,
}

/// Whom the servers of a place are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceScope {
    /// One person, everywhere.
    User,
    /// Everybody who works on a project.
    Project,
    /// One person, in one project.
    Local,
}

/// One of the files in which a tool looks for servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, whether it exists or not.
    pub path: PathBuf,
    /// Whom its servers are for.
    pub scope: PlaceScope,
    /// The project, for the scopes that belong to one.
    pub project: Option<PathBuf>,
}

impl PlaceScope {
    /// The name, as in `user`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

impl HomePlaces {
    /// The usual places for a home directory.
    pub fn of_home(home: impl Into<PathBuf>, is_macos: bool) -> Self {
        let home = home.into();
        let config = home.join(".config");
        let applications = if is_macos {
            home.join("Library/Application Support")
        } else {
            config.clone()
        };
        Self {
            home,
            config,
            applications,
            ..Self::default()
        }
    }
}

impl Tool {
    /// The files of a tool. Of several for one scope, the tool reads all; write to the first that
    /// exists, or else to the first.
    pub fn places(self, places: &HomePlaces) -> Vec<Place> {
        let HomePlaces {
            home,
            config,
            applications,
            ..
        } = places;
        let mut found = Collected {
            project: places.project.as_deref(),
            places: Vec::new(),
        };
        match self {
            Self::ClaudeCode => {
                let directory = places.claude_config.as_ref().unwrap_or(home);
                found.user(directory.join(".claude.json"));
                found.project(&[".mcp.json"]);
                found.local(directory.join(".claude.json"));
            }
            Self::ClaudeDesktop => {
                found.user(applications.join("Claude/claude_desktop_config.json"));
            }
            Self::Codex => {
                let directory = places.codex_home.clone();
                let directory = directory.unwrap_or_else(|| home.join(".codex"));
                found.user(directory.join("config.toml"));
                found.project(&[".codex/config.toml"]);
            }
            Self::Cursor => {
                found.user(home.join(".cursor/mcp.json"));
                found.project(&[".cursor/mcp.json"]);
            }
            Self::VsCode => {
                found.user(applications.join("Code/User/mcp.json"));
                found.project(&[".vscode/mcp.json"]);
            }
            Self::OpenCode => {
                let directory = config.join("opencode");
                found.user(directory.join("opencode.jsonc"));
                found.user(directory.join("opencode.json"));
                found.user(directory.join("config.json"));
                if let Some(file) = &places.opencode_config {
                    found.user(file.clone());
                }
                found.project(&[
                    "opencode.json",
                    "opencode.jsonc",
                    ".opencode/opencode.json",
                    ".opencode/opencode.jsonc",
                ]);
            }
            Self::Zed => {
                found.user(config.join("zed/settings.json"));
                found.project(&[".zed/settings.json"]);
            }
            Self::GeminiCli => {
                found.user(home.join(".gemini/settings.json"));
                found.project(&[".gemini/settings.json"]);
            }
            Self::McpJson => found.project(&[".mcp.json"]),
        }
        found.places
    }
}

struct Collected<'a> {
    project: Option<&'a Path>,
    places: Vec<Place>,
}

impl Collected<'_> {
    fn user(&mut self, path: PathBuf) {
        let scope = PlaceScope::User;
        let project = None;
        self.places.push(Place {
            path,
            scope,
            project,
        });
    }

    fn project(&mut self, paths: &[&str]) {
        let Some(project) = self.project else { return };
        for path in paths {
            self.places.push(Place {
                path: project.join(path),
                scope: PlaceScope::Project,
                project: Some(project.to_owned()),
            });
        }
    }

    fn local(&mut self, path: PathBuf) {
        let Some(project) = self.project else { return };
        self.places.push(Place {
            path,
            scope: PlaceScope::Local,
            project: Some(project.to_owned()),
        });
    }
}
