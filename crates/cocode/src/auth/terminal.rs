//! The person at the terminal who signs in: a browser is opened for them, or the address is shown,
//! and what they paste is read while the browser is awaited.

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead as _, IsTerminal as _, stdin};
use std::pin::pin;
use std::sync::Arc;

use cocode_auth::Secret;
use cocode_auth::oauth::browser::{self, BrowserFacts, BrowserPlan};
use cocode_auth::oauth::{
    AuthorizationRequest, CallbackOptions, LoopbackCallback, RedirectWish, UserAgent,
    UserAgentError, Visit, Work, race_paste,
};
use tokio::sync::mpsc;

use crate::arguments::quoted;
use crate::printer::{Printer, Style};
use crate::text::plain;

/// How many lines of a paste wait to be read.
const LINES_WAITING: usize = 64;

/// Brings a person from the terminal to an authorization server.
pub(super) struct TerminalAgent {
    options: CallbackOptions,
    way: BrowserWay,
    /// What a browser is started with.
    environment: Arc<[(OsString, OsString)]>,
    printer: Arc<Printer>,
}

/// How the person comes to the address.
#[derive(Clone, Debug)]
struct BrowserWay {
    plan: BrowserPlan,
    /// The person has said that they open it.
    is_chosen: bool,
    is_ssh: bool,
}

impl TerminalAgent {
    pub(super) fn new(
        options: CallbackOptions,
        no_browser: bool,
        environment: Vec<(OsString, OsString)>,
        printer: &Arc<Printer>,
    ) -> Self {
        let facts = BrowserFacts::gather(&environment);
        Self {
            options,
            way: BrowserWay {
                plan: browser::plan(&facts),
                is_chosen: no_browser,
                is_ssh: facts.ssh,
            },
            environment: environment.into(),
            printer: Arc::clone(printer),
        }
    }
}

impl UserAgent for TerminalAgent {
    fn prepare<'a>(&'a self, wish: RedirectWish<'a>) -> Work<'a, Box<dyn Visit>> {
        Box::pin(async move {
            let callback = LoopbackCallback::bind(&self.options, wish.kept).await;
            let callback = callback.map_err(|error| UserAgentError::Failed {
                message: "the browser could not come back to this machine".to_owned(),
                source: Some(Box::new(error)),
            })?;
            let visit = TerminalVisit {
                callback,
                server: self.options.server_name.clone(),
                way: self.way.clone(),
                environment: Arc::clone(&self.environment),
                printer: Arc::clone(&self.printer),
            };
            Ok(Box::new(visit) as Box<dyn Visit>)
        })
    }
}

impl fmt::Debug for TerminalAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TerminalAgent")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

struct TerminalVisit {
    callback: LoopbackCallback,
    server: String,
    way: BrowserWay,
    environment: Arc<[(OsString, OsString)]>,
    printer: Arc<Printer>,
}

impl Visit for TerminalVisit {
    fn redirect_uri(&self) -> &str {
        self.callback.redirect_uri()
    }

    fn go(self: Box<Self>, request: &AuthorizationRequest) -> Work<'_, Secret> {
        Box::pin(async move {
            let Self {
                callback,
                server,
                way,
                environment,
                printer,
            } = *self;
            let guide = Guide {
                request,
                port: callback.port(),
                server: &server,
                way: &way,
                printer: &printer,
            };
            let mut lines = typed_lines().map_err(|error| UserAgentError::Failed {
                message: "what is pasted cannot be read".to_owned(),
                source: Some(Box::new(error)),
            })?;
            let mut arrival = pin!(callback.wait(request));
            // The browser may be back before it is known that it was opened.
            let arrival = async {
                tokio::select! {
                    biased;
                    answer = &mut arrival => answer,
                    () = guide.lead(&environment) => arrival.await,
                }
            };
            race_paste(arrival, request, &mut lines, |error| {
                printer.warn(&error.to_string());
            })
            .await
        })
    }
}

/// Knows what to tell the person.
struct Guide<'a> {
    request: &'a AuthorizationRequest,
    /// Where we listen.
    port: u16,
    server: &'a str,
    way: &'a BrowserWay,
    printer: &'a Printer,
}

impl Guide<'_> {
    /// Brings the person to the authorization server, or shows the way.
    async fn lead(&self, environment: &[(OsString, OsString)]) {
        let commands = match &self.way.plan {
            BrowserPlan::Open(commands) if !self.way.is_chosen => commands,
            BrowserPlan::Open(_) => return self.show(None),
            BrowserPlan::Show(why) => {
                return self.show((!self.way.is_chosen).then(|| why.to_string()));
            }
        };
        if self.printer.json() {
            self.show_to_script(true);
        }
        let server = self.server;
        let host = self.request.url.host_str().unwrap_or_default();
        self.printer.note(&format!(
            "opening a browser at {host} to sign in to `{server}`; if none shows up, end this with \
             Ctrl-C and try `--no-browser`"
        ));
        if let Err(error) = browser::open(commands, &self.request.url, environment).await {
            self.show(Some(error.to_string()));
        }
    }

    /// Shows the address, and how the answer comes back from wherever it is opened.
    fn show(&self, why: Option<String>) {
        if self.printer.json() {
            return self.show_to_script(false);
        }
        let paint = self.printer.error_paint();
        let line = |text: &str| self.printer.err_line(text);
        if let Some(why) = why {
            line(&plain(&format!("no browser was opened: {why}")));
        }
        line(&plain(&format!(
            "to sign in to `{}`, open this address:",
            self.server
        )));
        let url = self.request.url.as_str();
        line(&format!("\n  {}\n", paint.paint(Style::Bold, url)));
        let redirect = &self.request.redirect_uri;
        line(&plain(&format!(
            "the browser then goes to {redirect}; if it cannot, paste the address that it ended at \
             here"
        )));
        if self.way.is_ssh && redirect.starts_with("http://") {
            let port = self.port;
            line(&format!(
                "to let it come back by itself, forward the port from where the browser is: ssh -L \
                 {port}:127.0.0.1:{port} …"
            ));
        }
    }

    /// The same for whoever reads lines of JSON.
    fn show_to_script(&self, opens: bool) {
        let url = quoted(self.request.url.as_str());
        let redirect = quoted(&self.request.redirect_uri);
        self.printer.err_line(&format!(
            "{{\"signIn\":{{\"url\":{url},\"redirectUri\":{redirect},\"browser\":{opens}}}}}"
        ));
    }
}

/// Lines of stdin, read by a thread that ends with the program. None, if reading would stop us.
fn typed_lines() -> std::io::Result<mpsc::Receiver<Secret>> {
    let (found, lines) = mpsc::channel(LINES_WAITING);
    if is_in_background() {
        return Ok(lines);
    }
    // It cannot be called back while it waits for a line.
    let _unjoined = std::thread::Builder::new()
        .name("paste".to_owned())
        .spawn(move || {
            for line in stdin().lock().lines() {
                let Ok(line) = line else { return };
                if found.blocking_send(Secret::new(line)).is_err() {
                    return;
                }
            }
        })?;
    Ok(lines)
}

/// Whether the terminal is another's: who reads it nevertheless is stopped.
fn is_in_background() -> bool {
    let input = stdin();
    input.is_terminal()
        && rustix::termios::tcgetpgrp(&input)
            .is_ok_and(|foreground| foreground != rustix::process::getpgrp())
}
