//! What is told when there is nothing to be let in with.

use cocode_wire::{Challenge, CredentialsError, CredentialsErrorKind};

use super::super::authorize::untrusted;
use super::super::challenge::{best, gateway_token_hints};
use super::super::login::LoginOptions;
use super::super::login_error::LoginError;
use super::super::renew::RenewError;
use super::OAuthCredentials;

impl OAuthCredentials {
    /// What to tell when somebody would have to sign in, and nobody is there. Whether that would be
    /// possible at all is found out once a minute.
    pub(super) async fn nobody_there(
        &self,
        options: &LoginOptions,
        why: Option<&RenewError>,
    ) -> CredentialsError {
        let verdict = self.held().verdict();
        if let Some(error) = verdict {
            return error;
        }
        let name = &self.0.site.sign_in.server;
        let error = match self.0.site.cannot_register(options).await {
            Some(error) => self.not_signed_in(&error),
            // It did not say how, so that it may mean a fixed token.
            None if options.challenge.is_none() => {
                self.needs_auth("wants you to sign in").hint(format!(
                    "if it takes a fixed token, name the variable that holds it: \
                     `bearer_token_env_var` of `{name}`"
                ))
            }
            None => self.needs_auth("wants you to sign in"),
        };
        let error = match why {
            Some(why) => error.because(why),
            None => error,
        };
        self.held().note_verdict(&error);
        error
    }

    /// Adds what the server said. A gateway with tokens of its own is nothing to sign in to.
    pub(super) fn with_challenge(
        &self,
        mut error: CredentialsError,
        challenge: &Challenge,
    ) -> CredentialsError {
        error.causes.insert(0, untrusted(&challenge.to_string()));
        if best(challenge).is_some_and(|challenge| challenge.is_of_gateway()) {
            error.hints = gateway_token_hints(&self.0.site.sign_in.server).into();
        }
        error
    }

    pub(super) fn needs_auth(&self, what: &str) -> CredentialsError {
        let name = &self.0.site.sign_in.server;
        self.error(CredentialsErrorKind::NeedsAuth, what)
            .hint(format!("sign in with `cocode mcp login {name}`"))
    }

    pub(super) fn not_renewed(&self, error: &RenewError) -> CredentialsError {
        if error.needs_sign_in() {
            return self.needs_auth("wants you to sign in").because(error);
        }
        self.error(error.kind(), "has a token that could not be renewed")
            .because(error)
    }

    pub(super) fn not_signed_in(&self, error: &LoginError) -> CredentialsError {
        let told = self.error(error.kind(), "does not let us in");
        let mut told = told.because(error);
        told.hints.extend(error.hints(&self.0.site.sign_in.server));
        told
    }

    pub(super) fn error(&self, kind: CredentialsErrorKind, what: &str) -> CredentialsError {
        let name = &self.0.site.sign_in.server;
        CredentialsError::new(kind, format!("server `{name}` {what}"))
    }
}
