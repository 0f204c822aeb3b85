//! The commands of the session: what there is, and who does it.

use std::fmt::Write as _;

use cocode_agent::{Company, ModelChoice};
use cocode_core::{ApprovalPolicy, SandboxMode, UnknownWord, nearest};
use cocode_terminal::{CommandOutcome, Line, PickEntry, PickList, Style};

use super::talk::{Talk, failed};
use super::{prompts, servers, tools};
use crate::agent::trouble;
use crate::error::{CliError, Code};

/// A command.
pub(super) struct Command {
    pub(super) name: &'static str,
    pub(super) takes: &'static str,
    pub(super) about: &'static str,
    /// It may run while a turn does.
    beside: bool,
}

const fn command(name: &'static str, takes: &'static str, about: &'static str) -> Command {
    Command {
        name,
        takes,
        about,
        beside: false,
    }
}

const fn beside(name: &'static str, takes: &'static str, about: &'static str) -> Command {
    Command {
        beside: true,
        ..command(name, takes, about)
    }
}

pub(super) const COMMANDS: &[Command] = &[
    command("/approval", "[POLICY]", "when you are asked"),
    command("/clear", "", "begin another conversation"),
    command("/compact", "", "sum the conversation up, to make room"),
    beside("/cost", "", "tokens and money that were spent"),
    beside("/help", "", "what there is"),
    beside(
        "/mcp",
        "[ACTION] [SERVER]",
        "servers: see, restart, sign in, switch on and off",
    ),
    command("/model", "[NAME] [PROVIDER]", "which model answers"),
    command("/new", "", "begin another conversation"),
    beside("/quit", "", "leave; the conversation is kept"),
    command("/resume", "[ID]", "go on with another conversation"),
    command("/sandbox", "[MODE]", "what commands may touch"),
    command("/tools", "", "the tools that the model is shown"),
];

const KEYS: &str = "\
Enter says it, Shift-Enter or Alt-Enter begins another line, Tab completes, ↑ and ↓ bring back what you \
said before, Ctrl-R searches in that. Ctrl-C interrupts, twice leaves. `@path` shows a file to the model, \
`@server:uri` a resource.";

pub(super) fn runs_beside_turn(line: &str) -> bool {
    let name = line.split_whitespace().next().unwrap_or_default();
    COMMANDS
        .iter()
        .any(|command| command.name == name && command.beside)
        || name == "/exit"
}

pub(super) async fn run(talk: &Talk, line: String, company: Company) -> CommandOutcome {
    let line = line.trim();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let words: Vec<&str> = rest.split_whitespace().collect();
    match (name, words.as_slice()) {
        ("/approval", []) => policies(talk),
        ("/approval", [word]) => match word.parse() {
            Ok(policy) => {
                let changed = talk.change(|wishes| wishes.approval = Some(policy)).await;
                said(changed, &format!("you are asked: {}", about_policy(policy)))
            }
            Err(error) => unknown_word(&error),
        },
        ("/sandbox", []) => modes(talk),
        ("/sandbox", [word]) => match word.parse() {
            Ok(mode) => {
                let changed = talk.change(|wishes| wishes.sandbox = Some(mode)).await;
                said(changed, &format!("commands: {}", about_mode(mode)))
            }
            Err(error) => unknown_word(&error),
        },
        ("/model", []) => models(talk).await,
        ("/model", [name]) => model(talk, name, None).await,
        ("/model", [name, provider]) => model(talk, name, Some(provider)).await,
        ("/clear" | "/new", []) => talk.clear(),
        ("/compact", []) => talk.compact(&company).await,
        ("/cost", []) => talk.spent.told(),
        ("/help", []) => help(talk),
        ("/quit" | "/exit", []) => CommandOutcome::Quit,
        ("/resume", []) => talk.resumable().await,
        ("/resume", [id]) => talk.resume_command(id).await,
        ("/tools", []) => tools::told(talk).await,
        ("/mcp", words) => servers::run(talk, words, &company).await,
        (name, _) if name.starts_with("/mcp__") => prompts::of_server(talk, line, &company).await,
        (name, _) => match usage(name) {
            Some(usage) => failed(
                CliError::new(Code::InvalidUsage, format!("`{name}` is used otherwise"))
                    .hint(usage),
            ),
            None => match prompts::saved(talk, name, rest) {
                Some(outcome) => outcome,
                None => unknown(talk, name),
            },
        },
    }
}

/// How a command is used, if there is such a command.
fn usage(name: &str) -> Option<String> {
    let command = COMMANDS.iter().find(|command| command.name == name)?;
    let Command {
        name, takes, about, ..
    } = command;
    let takes = takes.to_owned();
    let sign = if takes.is_empty() { "" } else { " " };
    Some(format!("{name}{sign}{takes}: {about}"))
}

fn unknown(talk: &Talk, name: &str) -> CommandOutcome {
    let saved: Vec<String> = talk
        .prompts
        .read()
        .into_iter()
        .map(|prompt| format!("/{}", prompt.name))
        .collect();
    let names = COMMANDS.iter().map(|command| command.name);
    let names = names.chain(saved.iter().map(String::as_str));
    let error = CliError::new(Code::InvalidUsage, format!("there is no command `{name}`"));
    failed(match nearest(name, names).first() {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("`/help` says what there is"),
    })
}

fn help(talk: &Talk) -> CommandOutcome {
    let mut text = String::from("| Command | What it does |\n|---|---|\n");
    for Command {
        name, takes, about, ..
    } in COMMANDS
    {
        let _always_fits = writeln!(text, "| `{}` | {about} |", format!("{name} {takes}").trim());
    }
    for prompt in talk.prompts.read() {
        let about = prompt
            .description
            .unwrap_or_else(|| "a saved prompt".to_owned());
        let about = about.replace(['|', '\n'], " ");
        let _always_fits = writeln!(text, "| `/{}` | {about} |", prompt.name);
    }
    let catalog = talk.manager.catalog();
    let n_prompts = catalog.prompts().count();
    if n_prompts > 0 {
        let _always_fits = writeln!(text, "| `/mcp__…` | prompts of servers: {n_prompts} |");
    }
    text.push('\n');
    text.push_str(KEYS);
    CommandOutcome::Markdown(text)
}

/// What is said after a change, or why there is none.
fn said(changed: Result<(), CliError>, what: &str) -> CommandOutcome {
    match changed {
        Ok(()) => CommandOutcome::Said(vec![Line::new(what, Style::PLAIN.dim())]),
        Err(error) => failed(error),
    }
}

fn unknown_word(error: &UnknownWord) -> CommandOutcome {
    failed(CliError::new(Code::InvalidUsage, error.to_string()))
}

fn policies(talk: &Talk) -> CommandOutcome {
    let now = talk.settings().approval;
    let all = [
        ApprovalPolicy::Untrusted,
        ApprovalPolicy::OnRequest,
        ApprovalPolicy::OnFailure,
        ApprovalPolicy::Never,
    ];
    let entries = all.map(|policy| {
        let about = about_policy(policy);
        entry("/approval", &policy.to_string(), about, policy == now)
    });
    picked("When are you to be asked?", entries.to_vec())
}

fn about_policy(policy: ApprovalPolicy) -> &'static str {
    match policy {
        ApprovalPolicy::Untrusted => "before everything that does more than read",
        ApprovalPolicy::OnRequest => {
            "before what leaves the sandbox, and before tools that may change something"
        }
        ApprovalPolicy::OnFailure => "after the sandbox was in the way",
        ApprovalPolicy::Never => "never; what is not allowed is refused",
    }
}

fn modes(talk: &Talk) -> CommandOutcome {
    let now = talk.settings().sandbox;
    let all = [
        SandboxMode::ReadOnly,
        SandboxMode::WorkspaceWrite,
        SandboxMode::DangerFullAccess,
    ];
    let entries = all.map(|mode| {
        let about = about_mode(mode);
        entry("/sandbox", &mode.to_string(), about, mode == now)
    });
    picked("What may commands touch?", entries.to_vec())
}

fn about_mode(mode: SandboxMode) -> &'static str {
    match mode {
        SandboxMode::ReadOnly => "read everything, write nothing",
        SandboxMode::WorkspaceWrite => "write in this directory only",
        SandboxMode::DangerFullAccess => "do whatever you may do yourself",
    }
}

fn entry(command: &str, word: &str, about: &str, is_now: bool) -> PickEntry {
    PickEntry {
        label: word.to_owned(),
        detail: if is_now {
            format!("{about} (as it is)")
        } else {
            about.to_owned()
        },
        value: format!("{command} {word}"),
    }
}

fn picked(title: &str, entries: Vec<PickEntry>) -> CommandOutcome {
    let title = title.to_owned();
    CommandOutcome::Pick(PickList { title, entries })
}

/// The models that the configuration names, and the one that answers.
async fn models(talk: &Talk) -> CommandOutcome {
    let settings = talk.settings();
    let chosen = talk.agent.options().providers.choose(&settings.model, None);
    let now = match chosen.await {
        Ok(chosen) => Some((chosen.model.name, chosen.provider.name().to_owned())),
        Err(_none_yet) => None,
    };
    let mut entries: Vec<PickEntry> = Vec::new();
    if let Some((name, provider)) = &now {
        entries.push(entry("/model", name, &format!("of {provider}"), true));
    }
    let is_other = |name: &&String| now.as_ref().is_none_or(|(now, _)| now != *name);
    for name in talk.models.iter().filter(is_other) {
        entries.push(entry("/model", name, "", false));
    }
    if entries.is_empty() {
        let message = "no model is configured";
        return failed(CliError::new(Code::NoModel, message).hint("`/model NAME [PROVIDER]`"));
    }
    picked(
        "Which model is to answer? `/model NAME [PROVIDER]` takes any other",
        entries,
    )
}

async fn model(talk: &Talk, name: &str, provider: Option<&str>) -> CommandOutcome {
    let provider = provider.map(str::to_owned);
    let choice = ModelChoice {
        model: Some(name.to_owned()),
        provider: provider.clone().or(talk.settings().model.provider),
    };
    let chosen = talk.agent.options().providers.choose(&choice, None).await;
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return failed(trouble(&error.into())),
    };
    let changed = talk
        .change(|wishes| {
            wishes.model = Some(name.to_owned());
            wishes.provider = provider.or(wishes.provider.take());
        })
        .await;
    if changed.is_ok() {
        talk.spent.set_model(&chosen.model.name);
    }
    let what = format!(
        "{} of {} answers",
        chosen.model.name,
        chosen.provider.name()
    );
    said(changed, &what)
}
