//! The words of `mcp add` as users of other tools type them, put so that they mean one thing only.
//!
//! Claude Code takes several values after one `-e` or `-H`; Codex takes a command without `--`, with
//! everything that follows it.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};
use cocode_config::is_variable_name;

use crate::args::McpArgs;
use crate::target::is_address;

/// Words that are ready to be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) words: Vec<OsString>,
    /// What the user should know about how they were understood.
    pub(crate) note: Option<String>,
}

/// Options that may follow a command in `claude mcp add`, or that people write last out of habit.
/// Here they are the command's.
const OPTIONS_AFTER_COMMANDS: [&str; 10] = [
    "--scope",
    "-s",
    "--transport",
    "-t",
    "--env",
    "-e",
    "--header",
    "-H",
    "--json",
    "--force",
];

/// Reads the words once more the way their user meant them.
pub(crate) fn understood(words: &[OsString], command: &Command) -> CommandLine {
    let unchanged = || CommandLine {
        words: words.to_vec(),
        note: None,
    };
    // To describe a command takes time, and nearly nobody adds a server.
    if !words.iter().any(|word| word == "add") {
        return unchanged();
    }
    let mcp = &McpArgs::command();
    let Some(add) = mcp.find_subcommand("add") else {
        return unchanged();
    };
    let mut reader = Reader {
        options: [command, mcp, add],
        rest: words.get(1..).unwrap_or_default(),
        done: words.get(..1).unwrap_or_default().to_vec(),
        has_address: false,
    };
    if reader.word().is_none_or(|word| word != "mcp")
        || reader.word().is_none_or(|word| word != "add")
        || reader.word().is_none()
    {
        return unchanged();
    }
    let note = reader.server();
    reader.done.extend_from_slice(reader.rest);
    CommandLine {
        words: reader.done,
        note,
    }
}

/// An option that takes several values, and how to tell one from another word.
type Several = (&'static str, fn(&str) -> bool);

struct Reader<'a> {
    /// The commands whose options may stand here.
    options: [&'a Command; 3],
    rest: &'a [OsString],
    done: Vec<OsString>,
    has_address: bool,
}

impl<'a> Reader<'a> {
    /// Passes over options with their values, up to and with the next word that is none. Nothing if
    /// there is no such word before `--`.
    fn word(&mut self) -> Option<&'a OsStr> {
        while let Some((word, rest)) = self.rest.split_first() {
            if word == "--" {
                return None;
            }
            self.rest = rest;
            self.done.push(word.clone());
            let text = word.to_str().unwrap_or_default();
            if !text.starts_with('-') || text == "-" {
                return Some(word);
            }
            self.option(text);
        }
        None
    }

    /// What comes after the name: an address and more options, or a command, which from its first
    /// word on has everything.
    fn server(&mut self) -> Option<String> {
        while let Some(word) = self.word() {
            if word.to_str().is_some_and(is_address) {
                self.has_address = true;
                continue;
            }
            // An address takes no more words, which is for others to say.
            if self.has_address {
                return None;
            }
            let program = self.done.pop()?;
            self.done.extend([OsString::from("--"), program]);
            let is_option = |word: &&OsString| word.to_string_lossy().starts_with('-');
            let option = self.rest.iter().find(is_option);
            if option.is_some_and(|option| option == "--") {
                // Nothing but words before it: it only says where the command's options begin.
                let separator = self.rest.iter().position(|word| word == "--")?;
                let (before, after) = self.rest.split_at(separator);
                self.done.extend_from_slice(before);
                self.rest = after.get(1..).unwrap_or_default();
                return None;
            }
            let option = option?.to_str()?;
            let option = option.split_once('=').map_or(option, |(name, _)| name);
            return OPTIONS_AFTER_COMMANDS.contains(&option).then(|| {
                format!(
                    "`{option}` comes after the command, and so belongs to it; what is for cocode \
                     comes before it"
                )
            });
        }
        None
    }

    /// Takes the values of an option that was passed.
    fn option(&mut self, text: &str) {
        let Some((argument, is_attached)) = self.find(text) else {
            return;
        };
        if !is_attached {
            let Some((value, rest)) = self.rest.split_first() else {
                return;
            };
            if value == "--" {
                return;
            }
            self.rest = rest;
            self.done.push(value.clone());
        }
        self.has_address |= argument.get_id() == "url";
        let several: Option<Several> = match argument.get_id().as_str() {
            "env" => Some(("--env", is_variable)),
            "header" => Some(("--header", is_header)),
            _ => None,
        };
        let Some((option, is_value)) = several else {
            return;
        };
        while let Some((value, rest)) = self.rest.split_first()
            && value.to_str().is_some_and(is_value)
        {
            self.rest = rest;
            self.done.extend([OsString::from(option), value.clone()]);
        }
    }

    /// The option with a value that a word names, and whether the value is in the same word.
    fn find(&self, text: &str) -> Option<(&'a Arg, bool)> {
        let takes_value = |argument: &Arg| argument.get_action().takes_values();
        if let Some(long) = text.strip_prefix("--") {
            let (name, is_attached) = match long.split_once('=') {
                Some((name, _)) => (name, true),
                None => (long, false),
            };
            let is_it = |argument: &&Arg| {
                let aliases = argument.get_all_aliases().unwrap_or_default();
                argument.get_long() == Some(name) || aliases.contains(&name)
            };
            let argument = self.arguments().find(is_it)?;
            return takes_value(argument).then_some((argument, is_attached));
        }
        // Several letters may share a dash; the first that takes a value has the rest for it.
        let letters: Vec<char> = text.chars().skip(1).collect();
        for (index, letter) in letters.iter().enumerate() {
            let is_it = |argument: &&Arg| argument.get_short() == Some(*letter);
            let argument = self.arguments().find(is_it)?;
            if takes_value(argument) {
                return Some((argument, index + 1 < letters.len()));
            }
        }
        None
    }

    fn arguments(&self) -> impl Iterator<Item = &'a Arg> + use<'a> {
        let arguments = self.options.into_iter().flat_map(Command::get_arguments);
        arguments.filter(|argument| !argument.is_positional())
    }
}

/// Whether a word is a variable with its value.
fn is_variable(word: &str) -> bool {
    let parts = word.split_once('=');
    parts.is_some_and(|(name, _)| is_variable_name(name))
}

/// Whether a word is a header with its value. Without the space it might be many other things.
fn is_header(word: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    word.split_once(": ")
        .is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(is_of_name))
}

#[cfg(test)]
#[path = "command_line_tests.rs"]
mod tests;
