//! Signs somebody in: from the discovery of the authorization server to stored tokens.

use cocode_core::{Dpop as DpopUse, Grant as GrantKind, Registration};

use super::authorize::{AuthorizationParameters, AuthorizationRequest};
use super::challenge::{AuthChallenge, Scheme};
use super::client::{Client, ClientAuthentication, ClientKind};
use super::discovery::{Discovered, Discovery, Purpose};
use super::dpop::Dpop;
use super::guard::is_loopback;
use super::http::shown;
use super::key::{KeyError, SigningAlgorithm, SigningKey};
use super::login_error::LoginError;
use super::metadata::AuthorizationServer;
use super::pkce::Pkce;
use super::record::{Grant, Record};
use super::registration::{self, RegistrationError, RegistrationMode, RegistrationWish};
use super::site::{Site, now};
use super::token::{TokenEndpoint, Unbound};
use super::token_servers;
use super::tokens::{TokenKind, Tokens};
use super::user_agent::{RedirectWish, UserAgent};
use super::vault::VaultError;
use crate::secret::Secret;
use crate::store::Place;

/// How often somebody without our lock may get in between.
const ATTEMPTS: usize = 3;

/// What is decided about one sign-in.
#[derive(Clone, Debug, Default)]
pub struct LoginOptions {
    /// What the server said when it refused; without it, it is looked for where it usually is.
    pub challenge: Option<AuthChallenge>,
    /// What to ask for, instead of what the configuration or the server names.
    pub scopes: Option<Vec<String>>,
    /// How to become a client, instead of what the configuration says.
    pub registration: Option<Registration>,
    /// The secret of the client that was registered beforehand, if somebody typed it in.
    pub client_secret: Option<Secret>,
    /// Become a new client even if one is kept.
    pub register_anew: bool,
}

/// Who is signed in now.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The authorization server.
    pub issuer: String,
    /// What the token is for.
    pub resource: String,
    /// What the token allows, as far as that is known.
    pub scopes: Vec<String>,
    /// When it ends, in seconds since 1970.
    pub expires_at: Option<u64>,
    /// Whether it can be renewed without anybody.
    pub renewable: bool,
    /// Whether it is bound to a key of ours.
    pub bound: bool,
    /// How we came by the client.
    pub client: ClientKind,
    /// The name of the client.
    pub client_id: String,
    /// Where the tokens are kept.
    pub place: Place,
}

impl SignedIn {
    pub(super) fn of(issuer: &str, grant: &Grant, place: Place) -> Self {
        let tokens = grant.tokens.as_ref();
        let scopes = tokens.and_then(|tokens| tokens.scopes.clone());
        Self {
            issuer: issuer.to_owned(),
            resource: grant.resource.clone().unwrap_or_default(),
            scopes: scopes.unwrap_or_else(|| grant.requested_scopes.clone()),
            expires_at: tokens.and_then(|tokens| tokens.expires_at),
            renewable: tokens.is_some_and(|tokens| tokens.refresh.is_some()),
            bound: tokens.is_some_and(|tokens| tokens.kind == TokenKind::Dpop),
            client: grant.client.kind,
            client_id: grant.client.id.clone(),
            place,
        }
    }
}

impl Grant {
    /// Whether its client may ask for this. Many authorization servers hold a client to the scopes
    /// that it registered with, which are those that were asked for then.
    fn may_ask(&self, scopes: &[String]) -> bool {
        let is_known = |scope| self.requested_scopes.contains(scope);
        self.client.kind != ClientKind::Dynamic
            || self.signed_in_at.is_none()
            || scopes.iter().all(is_known)
    }

    pub(super) fn dpop(&self) -> Result<Option<Dpop>, KeyError> {
        let key = self.dpop_key.as_ref().map(SigningKey::from_stored);
        Ok(key.transpose()?.map(Dpop::new))
    }

    pub(super) fn signed_in(&mut self, tokens: Tokens, asked: Vec<String>) {
        self.tokens = Some(tokens);
        self.requested_scopes = asked;
        self.wanted_scopes.clear();
        self.signed_in_at = Some(now());
    }
}

impl Site {
    /// Signs somebody in who is there, and stores what comes of it.
    pub async fn log_in(
        &self,
        agent: &dyn UserAgent,
        options: &LoginOptions,
    ) -> Result<SignedIn, LoginError> {
        if self.sign_in.oauth.grant != GrantKind::AuthorizationCode {
            return self.acquire(options).await;
        }
        self.check_address()?;
        let found = self.discover(options).await?;
        tracing::debug!(
            issuer = found.server.issuer,
            resource = found.resource,
            "authorization server found"
        );
        let record = self.read().await?.unwrap_or_else(|| Record::new(&self.url));
        self.check_issuer(&found.server, &record)?;
        let kept = record.grants.get(&self.slot(&found.server.issuer));
        let asked = self.scopes(options, &found, kept);
        let may_stay = |grant: &&Grant| !options.register_anew && grant.may_ask(&asked);
        let kept_client = kept.filter(may_stay).map(|grant| &grant.client);
        let redirect = kept_client.and_then(|client| client.redirect_uris.first());
        let visit = agent
            .prepare(RedirectWish {
                kept: redirect.map(String::as_str),
            })
            .await?;
        let redirect_uri = visit.redirect_uri();
        let client = self
            .client(options, &found.server, kept_client, redirect_uri, &asked)
            .await?;
        // Some authorization servers take another name of the same address.
        let redirect_uri = client.redirect_uris.first().map_or(redirect_uri, |uri| uri);
        let redirect_uri = redirect_uri.to_owned();
        tracing::debug!(client = client.id, kind = ?client.kind, "client");
        let grant = self.grant_of(&found, client, kept)?;
        // A registration outlives a sign-in that nobody finishes.
        if grant.client.kind == ClientKind::Dynamic {
            self.keep(&found.server.issuer, &grant, false).await?;
        }
        let parameters = AuthorizationParameters {
            client_id: &grant.client.id,
            redirect_uri: &redirect_uri,
            scopes: Some(asked.as_slice()).filter(|scopes| !scopes.is_empty()),
            resource: grant.resource.as_deref(),
        };
        let request = AuthorizationRequest::new(&found.server, &parameters, Pkce::generate()?)?;
        let answer = visit.go(&request).await?;
        let code = match request.accept(answer.expose()) {
            Ok(code) => code,
            Err(error) => return Err(self.not_permitted(error).await),
        };
        tracing::debug!("the answer of the authorization server is in order");
        let dpop = grant.dpop()?;
        let key = self.sign_in.signing_key().await?;
        let endpoint = self.endpoint(&found.server, &grant.client, key.as_ref(), dpop.as_ref())?;
        let resource = grant.resource.as_deref();
        let tokens = endpoint
            .exchange_code(&code, &request.verifier, &redirect_uri, resource)
            .await?;
        let mut grant = grant;
        grant.signed_in(tokens, asked);
        let place = self.keep(&found.server.issuer, &grant, true).await?;
        Ok(SignedIn::of(&found.server.issuer, &grant, place))
    }

    /// Tokens are not sent where everybody on the way could read them.
    pub(super) fn check_address(&self) -> Result<(), LoginError> {
        let is_safe = self.url.scheme() == "https" || is_loopback(&self.url);
        if is_safe {
            return Ok(());
        }
        let url = shown(&self.url);
        Err(LoginError::PlainServer { url })
    }

    /// Whether the server publishes who lets people in, though it may answer strangers as well.
    pub async fn says_where_to_sign_in(&self) -> bool {
        let found = self.discover(&LoginOptions::default()).await;
        found.is_ok_and(|found| found.protected.is_some())
    }

    /// Finds the authorization server.
    pub(super) async fn discover(&self, options: &LoginOptions) -> Result<Discovered, LoginError> {
        let discovery = Discovery {
            http: &self.http,
            server_url: &self.url,
            challenge: options.challenge.as_ref(),
            preferred_issuer: self.sign_in.oauth.issuer.as_deref(),
            purpose: match self.sign_in.oauth.grant {
                GrantKind::AuthorizationCode => Purpose::Browser,
                _ => Purpose::Machine,
            },
        };
        Ok(discovery.run().await?)
    }

    /// A client that was registered beforehand belongs to one authorization server. Who it is shown
    /// to must not be decided by the MCP server alone.
    pub(super) fn check_issuer(
        &self,
        server: &AuthorizationServer,
        record: &Record,
    ) -> Result<(), LoginError> {
        let oauth = &self.sign_in.oauth;
        let changed = |expected: &str| {
            Err(LoginError::IssuerChanged {
                expected: expected.to_owned(),
                found: server.issuer.clone(),
            })
        };
        if let Some(expected) = &oauth.issuer {
            return if *expected == server.issuer {
                Ok(())
            } else {
                changed(expected)
            };
        }
        let Some(id) = &oauth.client_id else {
            return Ok(());
        };
        if !self.may_see(server) {
            return Err(LoginError::IssuerUnknown {
                found: server.issuer.clone(),
            });
        }
        let knows = |grant: &Grant| grant.client.id == *id;
        if record
            .grants
            .get(&self.slot(&server.issuer))
            .is_some_and(knows)
        {
            return Ok(());
        }
        match record.grants.iter().find(|(_, grant)| knows(grant)) {
            Some((slot, _)) => changed(Record::issuer_of(slot)),
            None => Ok(()),
        }
    }

    /// Whether an authorization server that only the MCP server names may be shown what lets a
    /// program in. A person sees in the browser where that goes, a signature is good for one server
    /// only, and an identity provider says itself whom its word is for.
    fn may_see(&self, server: &AuthorizationServer) -> bool {
        let oauth = &self.sign_in.oauth;
        let has_key = oauth.private_key_file.is_some() || oauth.private_key_env.is_some();
        let is_careful = match oauth.grant {
            GrantKind::AuthorizationCode | GrantKind::Enterprise => true,
            GrantKind::ClientCredentials => has_key,
            GrantKind::JwtBearer => false,
        };
        let issuer = url::Url::parse(&server.issuer).ok();
        let host = issuer.as_ref().and_then(url::Url::host_str);
        is_careful || host.is_some() && host == self.url.host_str()
    }

    async fn client(
        &self,
        options: &LoginOptions,
        server: &AuthorizationServer,
        kept: Option<&Client>,
        redirect_uri: &str,
        asked: &[String],
    ) -> Result<Client, LoginError> {
        let oauth = &self.sign_in.oauth;
        let metadata_url = oauth.client_metadata_url.as_deref();
        let metadata_url = metadata_url.map(url::Url::parse).transpose();
        let wish = RegistrationWish {
            mode: match options.registration.unwrap_or(oauth.registration) {
                Registration::Auto => RegistrationMode::Auto,
                Registration::Cimd => RegistrationMode::Cimd,
                Registration::Dcr => RegistrationMode::Dcr,
            },
            preregistered: self.preregistered(options, server, kept, Some(redirect_uri))?,
            metadata_url: metadata_url.map_err(|_bad| LoginError::MetadataUrl)?,
            redirect_uri: redirect_uri.to_owned(),
            scopes: Some(asked.to_vec()).filter(|scopes| !scopes.is_empty()),
            client_name: "cocode".to_owned(),
        };
        let client = registration::register(&self.http, server, &wish, kept, now()).await;
        client.map_err(|source| self.unregistered(server, source))
    }

    pub(super) fn unregistered(
        &self,
        server: &AuthorizationServer,
        source: RegistrationError,
    ) -> LoginError {
        LoginError::Registration {
            advice: token_servers::advice(&self.url, Some(server)),
            source,
        }
    }

    /// The client that the configuration names.
    pub(super) fn preregistered(
        &self,
        options: &LoginOptions,
        server: &AuthorizationServer,
        kept: Option<&Client>,
        redirect_uri: Option<&str>,
    ) -> Result<Option<Client>, LoginError> {
        let oauth = &self.sign_in.oauth;
        let Some(id) = oauth.client_id.clone() else {
            return Ok(None);
        };
        let has_key = oauth.private_key_file.is_some() || oauth.private_key_env.is_some();
        let typed = options.client_secret.clone();
        let kept = kept.filter(|kept| kept.id == id && kept.kind == ClientKind::Preregistered);
        let secret = if typed.is_some() {
            typed
        } else {
            let kept = kept.and_then(|kept| kept.secret.as_ref());
            self.sign_in.client_secret(kept)?
        };
        let offers = |method: ClientAuthentication| {
            let methods = server.token_endpoint_auth_methods_supported.as_ref();
            // Without a word, RFC 8414 makes it this one.
            methods.map_or(method == ClientAuthentication::SecretBasic, |methods| {
                methods.iter().any(|offered| offered == method.as_str())
            })
        };
        let authentication = if has_key {
            ClientAuthentication::PrivateKeyJwt
        } else if secret.is_none() {
            ClientAuthentication::None
        } else if !offers(ClientAuthentication::SecretBasic)
            && offers(ClientAuthentication::SecretPost)
        {
            ClientAuthentication::SecretPost
        } else {
            ClientAuthentication::SecretBasic
        };
        Ok(Some(Client {
            id,
            secret,
            authentication,
            kind: ClientKind::Preregistered,
            redirect_uris: redirect_uri.into_iter().map(str::to_owned).collect(),
            secret_expires_at: None,
            registration_access_token: None,
            registration_uri: None,
        }))
    }

    /// A grant without tokens yet, with a key if they are to be bound to one.
    pub(super) fn grant_of(
        &self,
        found: &Discovered,
        client: Client,
        kept: Option<&Grant>,
    ) -> Result<Grant, LoginError> {
        let server = &found.server;
        let endpoint = server.token_endpoint.as_ref();
        let endpoint = endpoint.ok_or_else(|| LoginError::NoTokenEndpoint {
            issuer: server.issuer.clone(),
        })?;
        let mut grant = Grant::new(client, endpoint.as_str());
        let revocation = server.revocation_endpoint.as_ref();
        grant.revocation_endpoint = revocation.map(|url| url.as_str().to_owned());
        let configured = self.sign_in.oauth.resource.clone();
        grant.resource = Some(configured.unwrap_or_else(|| found.resource.clone()));
        if self.binds(found)? {
            let key = kept.and_then(|kept| kept.dpop_key.clone());
            grant.dpop_key = Some(match key {
                Some(key) => key,
                None => SigningKey::generate(SigningAlgorithm::Es256)?
                    .stored()
                    .clone(),
            });
        }
        if let Some(kept) = kept {
            grant.requested_scopes.clone_from(&kept.requested_scopes);
            grant.wanted_scopes.clone_from(&kept.wanted_scopes);
            grant.signed_in_at = kept.signed_in_at;
        }
        Ok(grant)
    }

    /// Whether tokens are to be bound to a key. By itself, that is done where the MCP server wants
    /// it: an authorization server that could do it says nothing of whether the MCP server can.
    fn binds(&self, found: &Discovered) -> Result<bool, LoginError> {
        let offered = found.server.dpop_signing_alg_values_supported.as_ref();
        let can = offered.is_some_and(|offered| offered.iter().any(|name| name == "ES256"));
        let required = found
            .protected
            .as_ref()
            .is_some_and(|resource| resource.dpop_bound_access_tokens_required);
        let asked = found
            .challenge
            .as_ref()
            .is_some_and(|challenge| challenge.scheme == Scheme::Dpop);
        match self.sign_in.oauth.dpop {
            DpopUse::Never => Ok(false),
            DpopUse::Always if !can => Err(LoginError::NoDpop {
                issuer: found.server.issuer.clone(),
            }),
            DpopUse::Always => Ok(true),
            DpopUse::Auto => Ok(can && (required || asked)),
        }
    }

    pub(super) fn endpoint<'a>(
        &'a self,
        server: &'a AuthorizationServer,
        client: &'a Client,
        key: Option<&'a SigningKey>,
        dpop: Option<&'a Dpop>,
    ) -> Result<TokenEndpoint<'a>, LoginError> {
        let url = server.token_endpoint.as_ref();
        let url = url.ok_or_else(|| LoginError::NoTokenEndpoint {
            issuer: server.issuer.clone(),
        })?;
        Ok(TokenEndpoint {
            http: &self.http,
            url,
            issuer: &server.issuer,
            client,
            key,
            dpop,
            unbound: match self.sign_in.oauth.dpop {
                DpopUse::Always => Unbound::Refused,
                DpopUse::Auto | DpopUse::Never => Unbound::Accepted,
            },
            now: now(),
        })
    }

    /// Stores a grant, and makes it the one in use if it has new tokens.
    async fn keep(
        &self,
        issuer: &str,
        grant: &Grant,
        signed_in: bool,
    ) -> Result<Place, VaultError> {
        let slot = self.slot(issuer);
        let mut transaction = self.vault.transaction(&self.url).await?;
        let mut attempt = 1;
        loop {
            let record = transaction.record().cloned();
            let mut record = record.unwrap_or_else(|| Record::new(&self.url));
            // Tokens that are stored stay with the client and key that they were given for, until
            // new ones are there.
            let stored = record.grants.get(&slot);
            let has_tokens = stored.is_some_and(|stored| stored.tokens.is_some());
            if signed_in {
                record.set_current(slot.clone(), grant.clone());
            } else if !has_tokens {
                record.grants.insert(slot.clone(), grant.clone());
            }
            match transaction.commit(record).await {
                Err(VaultError::Conflict { .. }) if attempt < ATTEMPTS => {
                    transaction.re_read().await?;
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }
}
