//! Signs somebody in at one server: whether it asks for that at all, and what came of it. Who brings
//! the person there and back is for the caller to say.

use std::time::Duration;

use cocode_auth::oauth::{
    CallbackOptions, LoginError, LoginOptions, ProbeAnswer, ProbeError, SignedIn, Site, UserAgent,
    UserAgentError, best_challenge, gateway_token_hints, probe,
};
use cocode_client::HeaderMap;
use cocode_core::Grant;

use super::subject::Subject;
use crate::error::{CliError, Code, Exit};
use crate::reach::Configured;
use crate::workspace::Workspace;

/// A sign-in that is about to be made.
pub(crate) struct SigningIn<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) site: Site,
    pub(crate) options: LoginOptions,
    pub(crate) workspace: &'a Workspace,
}

impl SigningIn<'_> {
    /// Where the person may come back to, within this time.
    pub(crate) fn callback(&self, limit: Duration) -> CallbackOptions {
        let oauth = &self.site.sign_in().oauth;
        CallbackOptions {
            port: oauth.callback_port,
            url: oauth.callback_url.clone(),
            limit,
            ..CallbackOptions::new(&self.subject.name)
        }
    }

    /// Signs in. Nothing, if the server asks nobody to do so.
    pub(crate) async fn run(
        &mut self,
        agent: &dyn UserAgent,
    ) -> Result<Option<SignedIn>, CliError> {
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
        let signed_in = self.site.log_in(agent, &self.options).await;
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
        let challenge = self.options.challenge.as_ref();
        told.hints = match challenge.filter(|challenge| challenge.is_of_gateway()) {
            Some(_) => gateway_token_hints(name).into(),
            None => error.hints(name),
        };
        if let LoginError::UserAgent(UserAgentError::TimedOut { .. }) = error {
            told.hints.push(format!(
                "if the page did not know the client, `cocode mcp logout {name} --revoke` forgets it"
            ));
        }
        told
    }
}

/// What is said where nobody has to sign in.
pub(crate) fn nothing_asked(name: &str) -> String {
    format!("server `{name}` asks for no sign-in: it answers anybody")
}
