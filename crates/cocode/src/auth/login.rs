//! `cocode mcp login`: signs somebody in, and says what came of it.

use cocode_auth::oauth::{
    CallbackOptions, LoginError, LoginOptions, ProbeAnswer, ProbeError, SignedIn, Site,
    UserAgentError, best_challenge, probe,
};
use cocode_client::HeaderMap;
use cocode_core::{Grant, OAuth};
use serde::Serialize;

use super::client_secret::{self, Given};
use super::report::{SignInReport, now};
use super::subject::{self, Subject};
use super::terminal::TerminalAgent;
use crate::args::auth::LoginArgs;
use crate::environment;
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::printer::{Style, print_json};
use crate::reach::Configured;
use crate::session::{interrupted, on_runtime};
use crate::stores;
use crate::text::plain;
use crate::workspace::Workspace;

pub(crate) fn run(args: &LoginArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let subject = subject::to_sign_in(&args.server, workspace)?;
    let oauth = with_wishes(args, &subject)?;
    let Subject {
        name, url, remote, ..
    } = &subject;
    let site = workspace
        .admissions()?
        .site(name, url.clone(), oauth, remote);
    // Before the runtime has anything to do: a person may take their time.
    let client_secret = if args.client_secret {
        Some(match client_secret::given(workspace)? {
            Given::Variable(secret) | Given::Typed(secret) => secret,
        })
    } else {
        client_secret::for_login(&site, workspace)?
    };
    let work = Login {
        args,
        subject: &subject,
        site,
        options: LoginOptions {
            challenge: None,
            scopes: args.scopes(),
            registration: args.registration.map(Into::into),
            client_secret,
            register_anew: false,
        },
        workspace,
    };
    on_runtime(workspace, Box::pin(work.all()))
}

/// What is configured, with what the command line says instead.
fn with_wishes(args: &LoginArgs, subject: &Subject) -> Result<OAuth, CliError> {
    let mut oauth = subject.remote.oauth.clone();
    if let Some(id) = &args.client_id {
        let name = &subject.name;
        if oauth.client_id.as_ref().is_some_and(|other| other != id) {
            let message = format!("`--client-id` is not the client in the file of `{name}`");
            return Err(CliError::new(Code::InvalidUsage, message).hint(format!(
                "what it brings would not be used; change the file: `cocode mcp explain {name}`"
            )));
        }
        oauth.client_id = Some(id.clone());
    }
    if args.client_secret && oauth.client_id.is_none() {
        let message = "`--client-secret` needs a client: `--client-id ID`";
        return Err(CliError::new(Code::InvalidUsage, message));
    }
    if args.callback_url.is_some() {
        oauth.callback_url.clone_from(&args.callback_url);
        oauth.callback_port = args.callback_port;
    } else if args.callback_port.is_some() {
        oauth.callback_port = args.callback_port;
    }
    Ok(oauth)
}

struct Login<'a> {
    args: &'a LoginArgs,
    subject: &'a Subject,
    site: Site,
    options: LoginOptions,
    workspace: &'a Workspace,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    server: &'a str,
    signed_in: bool,
    #[serde(flatten)]
    sign_in: Option<SignInReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

impl Login<'_> {
    async fn all(mut self) -> Result<Exit, CliError> {
        let mut interrupts = Interrupts::catch()?;
        let printer = &self.workspace.printer;
        let outcome = tokio::select! {
            biased;
            exit = interrupts.next() => return Err(interrupted(printer, exit)),
            outcome = Box::pin(self.signed_in()) => outcome?,
        };
        match outcome {
            Some(signed_in) => self.tell(&signed_in).await,
            None => self.tell_of_nothing(),
        }?;
        Ok(Exit::Ok)
    }

    /// Nothing, if the server asks nobody to sign in.
    async fn signed_in(&mut self) -> Result<Option<SignedIn>, CliError> {
        let url = self.site.sign_in().http_url();
        let headers = self.headers().await?;
        let http = self.workspace.admissions()?.http().clone();
        match probe(&http, &url, &headers).await {
            Ok(ProbeAnswer::Refused(challenge)) => {
                self.options.challenge = best_challenge(&challenge);
            }
            Ok(ProbeAnswer::Open) if !self.is_offered().await => return Ok(None),
            Ok(ProbeAnswer::Unclear { status }) if !self.is_offered().await => {
                let message = format!("`{}` answered with HTTP {status}", self.subject.name);
                return Err(CliError::new(Code::LoginFailed, message).hint(
                    "check the path of its URL; it is often /mcp, or /sse for older servers",
                ));
            }
            Ok(ProbeAnswer::Open | ProbeAnswer::Unclear { .. }) => {}
            Err(error) => return Err(self.unreachable(&error)),
        }
        let oauth = &self.site.sign_in().oauth;
        let callback = CallbackOptions {
            port: oauth.callback_port,
            url: oauth.callback_url.clone(),
            limit: self.args.timeout,
            ..CallbackOptions::new(&self.subject.name)
        };
        let agent = TerminalAgent::new(
            callback,
            self.args.no_browser,
            environment::all(),
            &self.workspace.printer,
        );
        let signed_in = self.site.log_in(&agent, &self.options).await;
        signed_in.map(Some).map_err(|error| self.failed(&error))
    }

    /// The headers that the server gets besides credentials.
    async fn headers(&self) -> Result<HeaderMap, CliError> {
        match &self.subject.spec {
            Some(spec) => {
                let connector = Configured::new(self.workspace)?;
                connector.headers(spec, &self.subject.remote).await
            }
            None => Ok(HeaderMap::new()),
        }
    }

    /// Whether signing in makes sense at a server that answers strangers: if it says where, or if
    /// somebody has said how.
    async fn is_offered(&self) -> bool {
        let oauth = &self.site.sign_in().oauth;
        if self.options.scopes.is_some()
            || self.options.registration.is_some()
            || oauth.client_id.is_some()
            || oauth.issuer.is_some()
            || oauth.grant != Grant::AuthorizationCode
        {
            return true;
        }
        self.site.says_where_to_sign_in().await
    }

    async fn tell(&self, signed_in: &SignedIn) -> Result<(), CliError> {
        let report = SignInReport::of_login(signed_in, now());
        let described = self.site.vault().describe().await;
        let store = if described.place == signed_in.place {
            stores::told(&described, self.workspace)
        } else {
            stores::place_name(signed_in.place).to_owned()
        };
        let name = &self.subject.name;
        let printer = &self.workspace.printer;
        if printer.json() {
            let report = Report {
                server: name,
                signed_in: true,
                sign_in: Some(report),
                store: Some(store),
                reason: None,
            };
            return print_json(printer, &report);
        }
        let bound = if report.bound_to_key {
            " (bound to a key of this machine)"
        } else {
            ""
        };
        let rows = [
            ("issuer", report.issuer.clone()),
            ("scopes", report.scopes()),
            ("ends", format!("{}{bound}", report.lasts())),
            ("client", report.client.told()),
            ("kept in", store),
        ];
        let title = format!("signed in to `{name}`");
        printer.out_line(&printer.paint().paint(Style::Bold, &plain(&title)))?;
        for (label, text) in rows {
            printer.out_line(&format!("  {label:<8} {}", plain(&text)))?;
        }
        Ok(())
    }

    fn tell_of_nothing(&self) -> Result<(), CliError> {
        let name = &self.subject.name;
        let printer = &self.workspace.printer;
        if printer.json() {
            let report = Report {
                server: name,
                signed_in: false,
                sign_in: None,
                store: None,
                reason: Some("the server asks for no sign-in"),
            };
            return print_json(printer, &report);
        }
        let line = format!("server `{name}` asks for no sign-in: it answers anybody");
        printer.out_line(&plain(&line))
    }

    fn unreachable(&self, error: &ProbeError) -> CliError {
        let (exit, code) = match error {
            ProbeError::Failed { .. } => (Exit::Server, "unreachable"),
            ProbeError::TimedOut { .. } => (Exit::Timeout, "connect-timeout"),
        };
        let message = format!("cannot ask `{}` how to sign in", self.subject.name);
        CliError::with(exit, code, message).because(error)
    }

    fn failed(&self, error: &LoginError) -> CliError {
        let name = &self.subject.name;
        let message = format!("nobody was signed in to `{name}`");
        let mut told = match error {
            LoginError::Registration { source, .. } if source.needs_registration() => {
                CliError::with(Exit::Auth, "client-registration-required", message)
            }
            LoginError::Vault(_) => CliError::with(Exit::Auth, "credentials-unavailable", message),
            _ => CliError::new(Code::LoginFailed, message),
        }
        .because(error);
        told.hints = error.hints(name);
        if let LoginError::UserAgent(UserAgentError::TimedOut { .. }) = error {
            told.hints.push(format!(
                "if the page did not know the client, `cocode mcp logout {name} --revoke` forgets it"
            ));
        }
        told
    }
}
