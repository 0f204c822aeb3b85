//! The client's side of a session at a terminal: answers questions, names roots, shows log messages.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use cocode_client::{
    Answer, ClientCapabilities, Elicitation, ElicitationAnswer, ElicitationMode, Era, Form,
    Handler, Notification, RequestOptions, Root, RpcError, Session,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Mutex, Notify};
use url::Url;

use crate::args::TargetArgs;
use crate::arguments::pairs;
use crate::elicit::{Permission, Person, fill_from};
use crate::error::{CliError, Code};
use crate::lines::Lines;
use crate::printer::{ErrWriter, Printer};
use crate::text::plain;
use cocode_core::nearest;

/// How long a server may take to ask for roots before it is taken for one that never does.
const ROOTS_PATIENCE: Duration = Duration::from_secs(1);

/// What a server gets to look at its roots after it has read them; nothing tells when it has.
const ROOTS_SETTLING: Duration = Duration::from_millis(100);

/// Serves what the server asks.
#[derive(Debug)]
pub(crate) struct TerminalHandler {
    printer: Arc<Printer>,
    /// How the server is called when it asks something.
    server: String,
    answers: BTreeMap<String, String>,
    /// The fields of all forms that were to be filled in from the answers.
    fields: std::sync::Mutex<BTreeSet<String>>,
    /// Somebody sits at the terminal.
    interactive: bool,
    /// The reader of the terminal, from the first question on. Who holds it may ask.
    terminal: Mutex<Option<Lines>>,
    roots: Vec<Root>,
    roots_asked_for: Notify,
}

#[derive(Deserialize)]
struct LogMessage {
    #[serde(default)]
    level: String,
    #[serde(default)]
    logger: Option<String>,
    #[serde(default)]
    data: Value,
}

impl TerminalHandler {
    pub(crate) fn new(
        args: &TargetArgs,
        server: &str,
        printer: &Arc<Printer>,
    ) -> Result<Self, CliError> {
        let roots: Result<Vec<Root>, CliError> = args.root.iter().map(root).collect();
        Ok(Self {
            printer: Arc::clone(printer),
            server: server.to_owned(),
            answers: pairs(&args.answer)?,
            fields: std::sync::Mutex::default(),
            interactive: io::stdin().is_terminal() && printer.stderr_is_terminal(),
            terminal: Mutex::default(),
            roots: roots?,
            roots_asked_for: Notify::new(),
        })
    }

    /// Waits until a server of the older era has taken up the roots, which it may ask for right
    /// after the handshake. What it is asked before that, it answers as if there were none.
    pub(crate) async fn settle_roots(&self, session: &Session) {
        if self.roots.is_empty() || session.server().era() != Era::Legacy {
            return;
        }
        let asked = self.roots_asked_for.notified();
        if tokio::time::timeout(ROOTS_PATIENCE, asked).await.is_err() {
            tracing::debug!("the server did not ask for roots");
            return;
        }
        // An answer to this shows that the server has read the roots.
        if let Err(error) = session.ping(RequestOptions::default()).await {
            tracing::debug!(%error, "no answer to the ping after the roots");
        }
        tokio::time::sleep(ROOTS_SETTLING).await;
    }

    /// Tells of answers that no form had a field for.
    pub(crate) fn warn_of_unused_answers(&self) {
        let fields = self.fields.lock();
        let fields = fields.unwrap_or_else(PoisonError::into_inner);
        for name in self.answers.keys().filter(|name| !fields.contains(*name)) {
            // A field that has its answer was not meant by another.
            let unanswered = fields
                .iter()
                .filter(|field| !self.answers.contains_key(*field));
            let close = nearest(name, unanswered.map(String::as_str));
            let close = close
                .first()
                .map(|close| format!("; did you mean `{close}`?"));
            self.printer.warn(&format!(
                "`--answer {name}=…`: `{name}` was not asked for{}",
                close.unwrap_or_default()
            ));
        }
    }

    /// Whether somebody is there who can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.interactive
    }

    /// Asks whether a tool may be called.
    #[expect(
        clippy::await_holding_invalid_type,
        reason = "to hold the terminal while a person answers is the point; others wait their turn"
    )]
    pub(crate) async fn may_call(&self, question: &str) -> io::Result<Permission> {
        let mut terminal = self.terminal.lock().await;
        let input = match &mut *terminal {
            Some(lines) => lines,
            none => none.insert(Lines::of(|| io::stdin().lock())?),
        };
        input.forget();
        let output = ErrWriter(Arc::clone(&self.printer));
        Person { input, output }.permits(question).await
    }

    /// What was asked, answered without asking anybody.
    fn answer_beforehand(&self, mode: &ElicitationMode) -> ElicitationAnswer {
        let filled = match mode {
            ElicitationMode::Form(schema) => Form::parse(schema)
                .map_err(|error| format!("its form cannot be read: {error}"))
                .and_then(|form| {
                    let names = form.fields.iter().map(|field| field.name.clone());
                    let fields = self.fields.lock();
                    fields.unwrap_or_else(PoisonError::into_inner).extend(names);
                    fill_from(&form, &self.answers)
                }),
            _ => Err("it wants a page to be visited, which needs a terminal".to_owned()),
        };
        filled.unwrap_or_else(|why| {
            let server = &self.server;
            self.printer.warn(&format!(
                "declined a question of the server `{server}`: {why}"
            ));
            ElicitationAnswer::Decline
        })
    }

    async fn answer(&self, request: Elicitation) -> ElicitationAnswer {
        if !self.interactive || !self.answers.is_empty() {
            return self.answer_beforehand(&request.mode);
        }
        self.ask_person(&request).await.unwrap_or_else(|error| {
            self.printer
                .warn(&format!("cannot ask at the terminal: {error}"));
            ElicitationAnswer::Cancel
        })
    }

    /// Asks at the terminal, after the questions that came before. Once the question is withdrawn
    /// or has taken too long, this is dropped and the terminal is free for the next.
    #[expect(
        clippy::await_holding_invalid_type,
        reason = "to hold the terminal while a person answers is the point; others wait their turn"
    )]
    async fn ask_person(&self, request: &Elicitation) -> io::Result<ElicitationAnswer> {
        let mut terminal = self.terminal.lock().await;
        let input = match &mut *terminal {
            Some(lines) => lines,
            none => none.insert(Lines::of(|| io::stdin().lock())?),
        };
        input.forget();
        let (server, message) = (&self.server, &request.message);
        let mut person = Person {
            input,
            output: ErrWriter(Arc::clone(&self.printer)),
        };
        match &request.mode {
            ElicitationMode::Form(schema) => {
                let form = Form::parse(schema).map_err(io::Error::other)?;
                person.fill_in(server, message, &form).await
            }
            ElicitationMode::Url(url) => person.visit(server, message, url).await,
            _ => Ok(ElicitationAnswer::Decline),
        }
    }
}

impl Handler for TerminalHandler {
    fn capabilities(&self) -> ClientCapabilities {
        let by_hand = self.interactive && self.answers.is_empty();
        ClientCapabilities {
            elicitation_form: self.interactive || !self.answers.is_empty(),
            elicitation_url: by_hand,
            roots: !self.roots.is_empty(),
            ..ClientCapabilities::default()
        }
    }

    fn notified(&self, notification: &Notification) {
        if !self.printer.verbose() || notification.method != "notifications/message" {
            return;
        }
        let message = notification
            .params
            .as_ref()
            .map(cocode_client::RawJson::decode::<LogMessage>);
        let Some(Ok(LogMessage {
            level,
            logger,
            data,
        })) = message
        else {
            return;
        };
        let text = data
            .as_str()
            .map_or_else(|| data.to_string(), str::to_owned);
        let logger = logger
            .map(|logger| format!(" {logger}"))
            .unwrap_or_default();
        self.printer
            .err_line(&plain(&format!("server {level}{logger}: {text}")));
    }

    fn elicit(&self, request: Elicitation) -> Answer<'_, ElicitationAnswer> {
        Box::pin(self.answer(request))
    }

    fn roots(&self) -> Answer<'_, Result<Vec<Root>, RpcError>> {
        Box::pin(async {
            self.roots_asked_for.notify_one();
            Ok(self.roots.clone())
        })
    }
}

fn root(path: &PathBuf) -> Result<Root, CliError> {
    let whole = Path::new(path).canonicalize();
    let whole = whole.map_err(|error| CliError::file("find the root", path, &error))?;
    if !whole.is_dir() {
        let message = format!("the root `{}` is not a directory", path.display());
        return Err(CliError::new(Code::InvalidUsage, message));
    }
    let uri = Url::from_file_path(&whole);
    let uri = uri.map_err(|()| {
        let message = format!("the root `{}` has no URI", whole.display());
        CliError::new(Code::InvalidUsage, message)
    })?;
    let name = whole
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let uri = uri.to_string();
    Ok(Root { uri, name })
}
