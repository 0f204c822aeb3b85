//! What can be written: commands and their words, prompts, files, resources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cocode_agent::serve::SavedPrompts;
use cocode_agent::{Settings, Work};
use cocode_client::{CompletionTarget, Manager, ServerName, command_words};
use cocode_core::{ApprovalPolicy, SandboxMode};
use cocode_terminal::{Candidate, Completer};
use tokio::time::Instant;

use super::commands::COMMANDS;
use super::files::{below, rank};
use super::servers::actions;
use super::talk::locked;

/// Candidates of one place.
const MAX_CANDIDATES: usize = 100;

/// Files that are looked at.
const MAX_FILES: usize = 50_000;

/// How long a look at the files is good for.
const LOOKED_FOR: Duration = Duration::from_secs(5);

/// Knows what can be written.
pub(super) struct Words {
    manager: Manager,
    prompts: SavedPrompts,
    settings: Arc<Mutex<Settings>>,
    models: Vec<String>,
    files: Mutex<Option<Looked>>,
}

/// The files of a directory, at one moment.
struct Looked {
    directory: PathBuf,
    at: Instant,
    files: Arc<Vec<String>>,
}

impl Words {
    pub(super) fn new(
        manager: Manager,
        prompts: SavedPrompts,
        settings: Arc<Mutex<Settings>>,
        models: Vec<String>,
    ) -> Self {
        Self {
            manager,
            prompts,
            settings,
            models,
            files: Mutex::default(),
        }
    }

    async fn candidates(&self, input: &str, cursor: usize) -> Vec<Candidate> {
        let before = input.get(..cursor).unwrap_or_default();
        let from = before.rfind(char::is_whitespace).map_or(0, |space| {
            let blank = before.get(space..).and_then(|rest| rest.chars().next());
            space + blank.map_or(1, char::len_utf8)
        });
        let word = before.get(from..).unwrap_or_default();
        let mut found = if let Some(mention) = word.strip_prefix('@') {
            self.mentions(mention, from).await
        } else if before.starts_with('/') && from == 0 {
            self.commands(word)
        } else if before.starts_with('/') {
            self.arguments(before, word, from).await
        } else {
            Vec::new()
        };
        found.truncate(MAX_CANDIDATES);
        found
    }

    fn commands(&self, word: &str) -> Vec<Candidate> {
        let own = COMMANDS
            .iter()
            .map(|command| (command.name.to_owned(), command.about.to_owned()));
        let saved = self.prompts.read().into_iter().map(|prompt| {
            let about = prompt.description.unwrap_or_default();
            (format!("/{}", prompt.name), about)
        });
        let catalog = self.manager.catalog();
        let of_servers = catalog.prompts().map(|(name, _, prompt)| {
            let about = prompt.description.clone().unwrap_or_default();
            (format!("/{name}"), about)
        });
        let all: Vec<(String, String)> = own.chain(saved).chain(of_servers).collect();
        fitting(all, word, 0)
    }

    /// The words of a command.
    async fn arguments(&self, before: &str, word: &str, from: usize) -> Vec<Candidate> {
        let mut words = before.split_whitespace();
        let command = words.next().unwrap_or_default();
        // Of these, the last is being written unless there is a blank behind it.
        let n_before = words.count() - usize::from(!word.is_empty());
        let names = || {
            let servers = self.manager.status();
            servers.into_iter().map(|server| server.name.to_string())
        };
        let plain = |all: Vec<String>| {
            let all = all.into_iter().map(|word| (word, String::new()));
            fitting(all, word, from)
        };
        match (command, n_before) {
            ("/approval", 0) => plain(words_of(ApprovalPolicy::WORDS)),
            ("/sandbox", 0) => plain(words_of(SandboxMode::WORDS)),
            ("/model", 0) => plain(self.models.clone()),
            ("/mcp", 0) => plain(actions().map(str::to_owned).chain(names()).collect()),
            ("/mcp", 1) => plain(names().collect()),
            (command, _) if command.starts_with("/mcp__") => {
                self.prompt_arguments(before, word, from).await
            }
            _ => Vec::new(),
        }
    }

    /// What a server says about an argument of its prompt, or which arguments there are.
    async fn prompt_arguments(&self, before: &str, word: &str, from: usize) -> Vec<Candidate> {
        let (command, rest) = before
            .split_once(char::is_whitespace)
            .unwrap_or((before, ""));
        let catalog = self.manager.catalog();
        let name = command.strip_prefix('/').unwrap_or_default();
        let Some((server, prompt)) = catalog.resolve_prompt(name) else {
            return Vec::new();
        };
        let earlier = rest.get(..rest.len() - word.len()).unwrap_or_default();
        let Ok(earlier) = command_words(earlier) else {
            return Vec::new();
        };
        let is_argument = |name: &str| prompt.arguments.iter().any(|one| one.name == name);
        let mut others = BTreeMap::new();
        let mut free = prompt.arguments.iter().map(|one| one.name.as_str());
        for word in &earlier {
            match word.split_once('=').filter(|(name, _)| is_argument(name)) {
                Some((name, value)) => others.insert(name.to_owned(), value.to_owned()),
                None => match free.next() {
                    Some(name) => others.insert(name.to_owned(), word.clone()),
                    None => return Vec::new(),
                },
            };
        }
        let named = word.split_once('=').filter(|(name, _)| is_argument(name));
        let (argument, value, beginning) = match named {
            Some((name, value)) => (name, value, format!("{name}=")),
            None => match free.find(|name| !others.contains_key(*name)) {
                Some(name) => (name, word, String::new()),
                None => return Vec::new(),
            },
        };
        let values = self
            .values(server, &prompt.name, (argument, value), &others)
            .await;
        values
            .into_iter()
            .map(|value| {
                let text = if value.contains(char::is_whitespace) {
                    format!("{beginning}\"{value}\"")
                } else {
                    format!("{beginning}{value}")
                };
                candidate(from, text, argument)
            })
            .collect()
    }

    async fn values(
        &self,
        server: &ServerName,
        prompt: &str,
        typed: (&str, &str),
        others: &BTreeMap<String, String>,
    ) -> Vec<String> {
        let target = CompletionTarget::Prompt(prompt.to_owned());
        match self.manager.complete(server, &target, typed, others).await {
            Ok(completion) => completion.values,
            Err(error) => {
                tracing::debug!(%server, %error, "nothing is known of what can be written");
                Vec::new()
            }
        }
    }

    async fn mentions(&self, mention: &str, from: usize) -> Vec<Candidate> {
        if let Some((server, typed)) = mention.split_once(':')
            && let Ok(server) = server.parse::<ServerName>()
            && let Some(known) = self.manager.catalog().server(&server)
        {
            let typed = typed.to_lowercase();
            let fits = known.resources.iter().filter(|resource| {
                let texts = [&resource.uri, &resource.name];
                texts
                    .iter()
                    .any(|text| text.to_lowercase().contains(&typed))
            });
            return fits
                .map(|resource| {
                    candidate(from, format!("@{server}:{}", resource.uri), &resource.name)
                })
                .collect();
        }
        let mut found = self.servers(mention, from);
        let directory = locked(&self.settings).cwd.clone();
        let files = self.files(&directory).await;
        let mut ranked: Vec<((u8, usize), &String)> = files
            .iter()
            .filter_map(|path| Some((rank(path, mention)?, path)))
            .collect();
        ranked.sort();
        found.extend(ranked.into_iter().take(MAX_CANDIDATES).map(|(_, path)| {
            let text = if path.contains(char::is_whitespace) {
                format!("@\"{path}\"")
            } else {
                format!("@{path}")
            };
            let mut candidate = candidate(from, text, "");
            if path.ends_with('/') {
                candidate.text.truncate(candidate.text.trim_end().len());
            }
            candidate
        }));
        found
    }

    /// Servers that have resources.
    fn servers(&self, typed: &str, from: usize) -> Vec<Candidate> {
        let catalog = self.manager.catalog();
        let servers = catalog.servers().filter(|server| {
            let has = !server.resources.is_empty() || !server.templates.is_empty();
            has && server.is_offered && server.name.as_str().starts_with(typed)
        });
        servers
            .map(|server| {
                let about = format!("{} resources", server.resources.len());
                let mut candidate = candidate(from, format!("@{}:", server.name), &about);
                candidate.text.truncate(candidate.text.trim_end().len());
                candidate
            })
            .collect()
    }

    async fn files(&self, directory: &Path) -> Arc<Vec<String>> {
        if let Some(looked) = &*locked(&self.files)
            && looked.directory == directory
            && looked.at.elapsed() < LOOKED_FOR
        {
            return Arc::clone(&looked.files);
        }
        let walked = directory.to_owned();
        let found = tokio::task::spawn_blocking(move || {
            let found = below(&walked, None, MAX_FILES).into_iter();
            found
                .filter_map(|path| path.into_os_string().into_string().ok())
                .collect()
        });
        let files = Arc::new(found.await.unwrap_or_default());
        *locked(&self.files) = Some(Looked {
            directory: directory.to_owned(),
            at: Instant::now(),
            files: Arc::clone(&files),
        });
        files
    }
}

impl Completer for Words {
    fn complete<'a>(&'a self, input: &'a str, cursor: usize) -> Work<'a, Vec<Candidate>> {
        Box::pin(self.candidates(input, cursor))
    }
}

fn words_of(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Those that begin as typed, then those that have it anywhere.
fn fitting(
    all: impl IntoIterator<Item = (String, String)>,
    typed: &str,
    from: usize,
) -> Vec<Candidate> {
    let bare = typed.trim_start_matches('/');
    let (begin, others): (Vec<_>, Vec<_>) = all
        .into_iter()
        .filter(|(word, _)| word.contains(bare))
        .partition(|(word, _)| word.starts_with(typed));
    let all = begin.into_iter().chain(others);
    all.map(|(word, about)| {
        let about = about.lines().next().unwrap_or_default();
        candidate(from, word, about)
    })
    .collect()
}

fn candidate(from: usize, word: String, about: &str) -> Candidate {
    Candidate {
        from,
        text: format!("{word} "),
        label: word,
        detail: about.to_owned(),
    }
}
