//! `cocode mcp login`: signs somebody in, and says what came of it.

use cocode_auth::oauth::{LoginOptions, SignedIn};
use cocode_core::OAuth;
use serde::Serialize;

use super::client_secret::{self, Given};
use super::report::{SignInReport, now};
use super::signing_in::{SigningIn, nothing_asked};
use super::subject::{self, Subject};
use super::terminal::TerminalAgent;
use crate::args::auth::LoginArgs;
use crate::environment;
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::printer::{Style, print_json};
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
    let work = SigningIn {
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
    let work = Login {
        args,
        work,
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
    work: SigningIn<'a>,
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
        let agent = TerminalAgent::new(
            self.work.callback(self.args.timeout),
            self.args.no_browser,
            environment::all(),
            &self.workspace.printer,
        );
        self.work.run(&agent).await
    }

    async fn tell(&self, signed_in: &SignedIn) -> Result<(), CliError> {
        let report = SignInReport::of_login(signed_in, now());
        let described = self.work.site.vault().describe().await;
        let store = if described.place == signed_in.place {
            stores::told(&described, self.workspace)
        } else {
            stores::place_name(signed_in.place).to_owned()
        };
        let name = &self.work.subject.name;
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
        let name = &self.work.subject.name;
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
        printer.out_line(&plain(&nothing_asked(name)))
    }
}
