//! The command line of what is allowed: permissions, policy, plugins, secrets, and the files
//! themselves.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::TargetArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsVerb {
    /// List all rules for tools, and where they are written
    List,
    /// Let tools be called without asking
    Allow(RuleArgs),
    /// Ask before tools are called
    Ask(RuleArgs),
    /// Never call tools
    Deny(RuleArgs),
    /// Take a rule back
    Remove(RuleArgs),
    /// Forget the remembered answer for a tool, or all of them
    Forget {
        /// The tool, as in `mcp__github__create_issue`
        tool: Option<String>,
    },
    /// Say what would happen to a call, and which rule decides
    ///
    /// Ends with 0 whatever the answer is: allow, ask or deny is the first word that is printed, and
    /// `verdict` with `--json`.
    Test(TestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The tool, as in `mcp__github__create_issue`
    pub(crate) tool: String,
    /// As if the tool said that it changes nothing
    #[arg(long)]
    pub(crate) read_only: bool,
    /// As if the tool said that it destroys nothing
    #[arg(long)]
    pub(crate) not_destructive: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RuleArgs {
    /// The tools, as in `mcp__*`, `mcp__github__*`, `mcp__github__create_*` or `github.create_*`
    pub(crate) pattern: String,
    /// Only for tools that say they change nothing (true), or that do not say so (false)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) read_only: Option<bool>,
    /// Only for tools that may destroy something (true), or that say they do not (false)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) destructive: Option<bool>,
    /// Whose the rule is
    #[arg(short, long, value_name = "SCOPE", default_value = "user")]
    pub(crate) scope: RuleScope,
}

/// The scopes whose rules can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleScope {
    /// This work tree, for you alone: .cocode/config.local.toml
    Local,
    /// This work tree, for everybody who has it: .cocode/config.toml
    Project,
    /// You, everywhere: ~/.config/cocode/config.toml
    #[value(alias = "global")]
    User,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Say what the organization's policy makes of the configured servers, or of one given here
    Check {
        /// Which configured servers; all, if none is named
        #[arg(value_name = "SERVER")]
        names: Vec<String>,
        #[command(flatten)]
        target: Box<TargetArgs>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginVerb {
    /// Add a folder that brings servers, and approve them as they are now
    Add {
        /// The folder
        #[arg(value_hint = ValueHint::DirPath)]
        path: PathBuf,
        /// Approve without asking
        #[arg(short, long)]
        yes: bool,
    },
    /// List the plugins and what they bring
    #[command(visible_alias = "ls")]
    List,
    /// Remove a plugin; its folder stays
    #[command(visible_alias = "rm")]
    Remove {
        /// Its name or folder
        name: String,
    },
    /// Use the servers of a plugin again
    Enable {
        /// Its name or folder
        name: String,
    },
    /// Keep a plugin, but do not use its servers
    Disable {
        /// Its name or folder
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    /// Where to keep secrets, whatever the configuration says
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) credential_store: Option<CredentialStoreArg>,
    #[command(subcommand)]
    pub(crate) verb: SecretVerb,
}

/// Where secrets are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CredentialStoreArg {
    /// The keyring of the system if there is one, else the file
    Auto,
    /// The keyring of the system
    Keyring,
    /// A file that only you can read
    File,
}

impl CredentialStoreArg {
    /// The word for it.
    pub(crate) fn name(self) -> Option<String> {
        let value = self.to_possible_value()?;
        Some(value.get_name().to_owned())
    }

    /// The one that this word means.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::from_str(name, false).ok()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretVerb {
    /// Keep a secret, read from stdin or asked for at the terminal
    Set {
        /// What to call it: `keyring:NAME` refers to it
        name: String,
    },
    /// List the names of the secrets that are kept
    #[command(visible_alias = "ls")]
    List,
    /// Remove a secret
    #[command(visible_alias = "rm")]
    Remove {
        /// Which one
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// List the files that are looked for, and what was found in them
    Files,
    /// Check all files, and say everything that is wrong with them
    Check,
    /// Print the settings that hold, and where each one is written
    Show,
    /// Print the JSON Schema of a file, for editors
    Schema {
        /// Of which file
        kind: SchemaFile,
    },
}

/// The files that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFile {
    /// mcp.toml, .mcp.toml, .cocode.local.toml, managed-mcp.toml
    Mcp,
    /// config.toml
    Config,
    /// policy.toml
    Policy,
}
