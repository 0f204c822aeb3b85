//! What the agent is told on the command line: `cocode exec`, `cocode sessions`, and `cocode` alone.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use cocode_core::{ApprovalPolicy, SandboxMode};

pub(crate) const EXEC_HELP: &str = "\
Nobody is asked anything unless --approval-policy says so and there is a terminal: what is not allowed is \
refused, and the model is told. The last words of the model are printed to stdout, everything else to \
stderr. With --json, every event is a line of JSON on stdout.

Examples:
  cocode exec 'What does this project do?'
  cocode exec --sandbox workspace-write 'Mend the failing test'
  git diff | cocode exec 'Write a commit message for this change'
  cocode exec --resume 0f8fad5b-d9cb-469f-a165-70867728950e 'And now the other one'";

/// What a conversation is held with.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct AgentArgs {
    /// The model
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Whose model: a name of `[providers]`, or anthropic, openai, ollama
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// The settings of `[agent.profiles.NAME]`
    #[arg(short, long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// When a person is asked: untrusted, on-request, on-failure, never
    #[arg(short, long, value_name = "POLICY")]
    pub(crate) approval_policy: Option<ApprovalPolicy>,
    /// What commands may touch: read-only, workspace-write, danger-full-access
    #[arg(short, long, value_name = "MODE")]
    pub(crate) sandbox: Option<SandboxMode>,
    /// Let commands in the sandbox use the network
    #[arg(long)]
    pub(crate) network: bool,
    /// Work in this directory
    #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cd: Option<PathBuf>,
    /// Let this directory be written, too, with workspace-write
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,
}

/// What `cocode` alone understands.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct InteractiveArgs {
    /// Say this first
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Go on with this conversation; without an id, with one from a list
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "last")]
    pub(crate) resume: Option<String>,
    /// Go on with the last conversation of this directory
    #[arg(long, alias = "continue")]
    pub(crate) last: bool,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

impl InteractiveArgs {
    /// An option of these that is given, if any is.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let Self {
            prompt,
            resume,
            last,
            agent,
        } = self;
        let AgentArgs {
            model,
            provider,
            profile,
            approval_policy,
            sandbox,
            network,
            cd,
            add_dir,
        } = agent;
        let all = [
            ("--prompt", prompt.is_some()),
            ("--resume", resume.is_some()),
            ("--last", *last),
            ("--model", model.is_some()),
            ("--provider", provider.is_some()),
            ("--profile", profile.is_some()),
            ("--approval-policy", approval_policy.is_some()),
            ("--sandbox", sandbox.is_some()),
            ("--network", *network),
            ("--cd", cd.is_some()),
            ("--add-dir", !add_dir.is_empty()),
        ];
        let given = all.into_iter().find(|(_, is_given)| *is_given);
        given.map(|(option, _)| option)
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ExecArgs {
    /// What is to be done; `-` reads it from stdin. What is piped in besides is added to it
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Go on with this conversation
    #[arg(long, value_name = "ID", conflicts_with = "last")]
    pub(crate) resume: Option<String>,
    /// Go on with the last conversation of this directory
    #[arg(long)]
    pub(crate) last: bool,
    /// Show the model this image
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) image: Vec<PathBuf>,
    /// Write the last words of the model to this file, too
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

/// What is done with conversations that are kept.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SessionsVerb {
    /// List conversations, the last used first
    List {
        /// At most so many
        #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
        limit: usize,
        /// Only those of the directory that this is started in
        #[arg(long)]
        here: bool,
        #[command(flatten)]
        place: ConversationsPlace,
    },
    /// Show a conversation
    Show {
        /// Which one; the beginning of its id is enough
        id: String,
        #[command(flatten)]
        place: ConversationsPlace,
    },
    /// Remove conversations
    Rm {
        /// Which ones; the beginning of an id is enough
        #[arg(value_name = "ID", required_unless_present = "older_than_days")]
        ids: Vec<String>,
        /// Remove those that were not used for so many days
        #[arg(long, value_name = "DAYS", conflicts_with = "ids")]
        older_than_days: Option<u64>,
        #[command(flatten)]
        place: ConversationsPlace,
    },
}

/// Where conversations are looked for.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ConversationsPlace {
    /// Where your gateways keep theirs, by `gateway.store`
    #[arg(long)]
    pub(crate) gateway: bool,
}

impl SessionsVerb {
    pub(crate) fn place(&self) -> ConversationsPlace {
        match self {
            Self::List { place, .. } | Self::Show { place, .. } | Self::Rm { place, .. } => *place,
        }
    }
}
