//! The front door: who comes, what lets them in, and who has to go because that is worth nothing any
//! more.

use std::sync::Arc;

use bytes::Bytes;
use cocode_access::{
    Checked, DoorOptions, Doorkeeper, IssuerOptions, OAuthOptions, Principal, PrincipalId,
    PrincipalKind, Refusal, ResourceServer, Revoked, RevokedToken, Token, TokenKeeper,
    TokenStoreError,
};
use cocode_admin::{CallBook, TurnedAway, Who};
use cocode_config::{Config, GatewayOAuth};
use cocode_wire::serve::{Admission, Admitting, Door, Guest, Visit};
use http::{HeaderMap, Response, StatusCode, header};
use tokio::task::JoinSet;
use url::Url;

use super::listen::is_for_others;
use super::plan::Plan;
use super::views::{NoView, Views};
use crate::access::token_trouble;
use crate::error::{CliError, Code};
use crate::govern::tokens::{made, parsed};
use crate::records::Records;
use crate::workspace::Workspace;

/// How soon to come again where there is no room now.
const COME_AGAIN_SECONDS: &str = "5";

/// Name of the token that a gateway creates for itself.
pub(crate) const FIRST_TOKEN: &str = "initial";

/// Lets people in.
#[derive(Debug)]
pub(crate) struct FrontDoor {
    keeper: Doorkeeper,
    tokens: Arc<TokenKeeper>,
    views: Arc<Views>,
    calls: CallBook,
}

impl FrontDoor {
    /// The tokens that let people in.
    pub(crate) async fn tokens_of(records: &dyn Records) -> Result<Arc<TokenKeeper>, CliError> {
        let tokens = TokenKeeper::open(records.tokens()).await;
        Ok(Arc::new(tokens.map_err(|error| token_trouble(&error))?))
    }

    /// The door of a gateway, by its settings and tokens.
    pub(crate) fn open(
        plan: &Plan,
        is_asked: bool,
        (views, calls): (&Arc<Views>, &CallBook),
        tokens: Arc<TokenKeeper>,
        workspace: &Workspace,
    ) -> Result<Self, CliError> {
        let config = workspace.config()?;
        let oauth = config.settings.gateway.oauth.as_ref();
        let oauth = oauth.map(|oauth| resource_server(oauth, workspace));
        let is_required = config.authentication_required().is_some();
        let keeper = Doorkeeper::new(DoorOptions {
            tokens: Some(Arc::clone(&tokens)),
            oauth: oauth.transpose()?,
            is_open: !is_asked && !is_required && !is_for_others(&plan.http),
        });
        Ok(Self {
            keeper,
            tokens,
            views: Arc::clone(views),
            calls: calls.clone(),
        })
    }

    /// Creates and stores the token of a gateway that must not be open. Returns none if another process
    /// has stored it meanwhile.
    pub(crate) async fn create_token(&self) -> Result<Option<Token>, CliError> {
        let (token, record) = made(&parsed(FIRST_TOKEN)?, false, None)?;
        match self.tokens.store().add(&record).await {
            Ok(()) => {
                self.tokens.refresh().await;
                Ok(Some(token))
            }
            Err(TokenStoreError::Taken(_)) => Ok(None),
            Err(error) => Err(token_trouble(&error)
                .hint("without `--allow-shell`, `--allow-write` and `--agent` no token is needed")),
        }
    }

    /// Decides about somebody who wants to use servers.
    pub(crate) fn admit(&self, visit: &Visit<'_>) -> Admitting<'static> {
        match self.keeper.check(visit.headers, visit.query) {
            Checked::Now(Err(refusal)) => Admitting::Now(self.turned_away(&refusal)),
            Checked::Now(Ok(principal)) if principal.kind == PrincipalKind::Local => {
                Admitting::Now(Admission::Welcome(None))
            }
            Checked::Now(Ok(principal)) if self.views.known(principal.id.as_str()).is_some() => {
                Admitting::Now(Admission::Welcome(Some(guest(&principal))))
            }
            Checked::Now(Ok(principal)) => {
                let views = Arc::clone(&self.views);
                Admitting::Later(Box::pin(async move { welcomed(&views, &principal).await }))
            }
            Checked::Later(work) => {
                let (views, calls) = (Arc::clone(&self.views), self.calls.clone());
                Admitting::Later(Box::pin(async move {
                    match work.await {
                        Ok(principal) => welcomed(&views, &principal).await,
                        Err(refusal) => {
                            calls.turn_away(TurnedAway::Authentication);
                            refused(&refusal)
                        }
                    }
                }))
            }
        }
    }

    /// Who wants a page, as far as a token says so: what they have open ends with that token. Whether
    /// they get the page is decided there.
    pub(crate) fn recognise(&self, visit: &Visit<'_>) -> Admitting<'static> {
        if !visit.headers.contains_key(header::AUTHORIZATION) {
            return Admitting::Now(Admission::Welcome(None));
        }
        match self.keeper.check(visit.headers, visit.query) {
            Checked::Now(checked) => Admitting::Now(Admission::Welcome(guest_of(checked))),
            Checked::Later(work) => {
                Admitting::Later(Box::pin(
                    async move { Admission::Welcome(guest_of(work.await)) },
                ))
            }
        }
    }

    /// Who wants to look after the gateway. Somebody who brings no token may have a cookie.
    pub(crate) async fn who(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        config: &Config,
    ) -> Result<Who, Refusal> {
        let has_token = headers.contains_key(header::AUTHORIZATION);
        let checked = match self.keeper.check(headers, query) {
            Checked::Now(checked) => checked,
            Checked::Later(work) => work.await,
        };
        match checked {
            // An open gateway lets everybody use servers, but not look after them.
            Ok(principal) if principal.kind == PrincipalKind::Local => Ok(Who::Anonymous),
            Ok(principal) => {
                let gateway = &config.settings.gateway;
                let own = gateway.principal(principal.id.as_str());
                let own = own.and_then(|own| own.admin);
                Ok(Who::Bearer {
                    is_admin: own.unwrap_or(principal.is_admin),
                    name: principal.id.shared(),
                })
            }
            Err(refusal) if !has_token && refusal.status() == StatusCode::UNAUTHORIZED => {
                Ok(Who::Anonymous)
            }
            Err(refusal) => {
                self.calls.turn_away(TurnedAway::Authentication);
                Err(refusal)
            }
        }
    }

    /// What says where tokens are to be got, where an authorization server gives them.
    pub(crate) fn metadata_at(&self, path: &str) -> Option<Bytes> {
        let oauth = self.keeper.oauth()?;
        oauth.serves_metadata_at(path).then(|| oauth.metadata())
    }

    /// Whether an authorization server gives tokens.
    pub(crate) fn takes_access_tokens(&self) -> bool {
        self.keeper.oauth().is_some()
    }

    /// The gateway's own tokens.
    pub(crate) fn tokens(&self) -> &Arc<TokenKeeper> {
        &self.tokens
    }

    /// Notes when tokens were used, before the end.
    pub(crate) async fn close(&self) {
        if let Err(error) = self.tokens.close().await {
            tracing::warn!(%error, "when tokens were used last is not noted");
        }
    }

    /// Sees to it that nobody stays who may not, for as long as this is held.
    pub(crate) fn guarded(&self, door: &Door) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.evictions(door.clone()));
        if !self.tokens.is_needed() {
            tasks.spawn(self.first_token(door.clone()));
        }
        tasks
    }

    /// Sends everybody away whose token is revoked, for as long as there are tokens.
    fn evictions(&self, door: Door) -> impl Future<Output = ()> + Send + use<> {
        let mut revocations = self.tokens.revocations();
        async move {
            while let Some(revoked) = revocations.next().await {
                match revoked {
                    // Another token of that name may be in use already.
                    Revoked::One(RevokedToken { name, credential }) => {
                        door.evict_by(PrincipalId::of_token(&name).as_str(), &credential);
                    }
                    Revoked::Many => door.evict_all(),
                }
            }
        }
    }

    /// Sends everybody away who did not have to say who they are, once there is a token.
    fn first_token(&self, door: Door) -> impl Future<Output = ()> + Send + use<> {
        let needed = self.tokens.until_needed();
        async move {
            needed.await;
            door.evict_strangers();
        }
    }

    fn turned_away(&self, refusal: &Refusal) -> Admission {
        self.calls.turn_away(TurnedAway::Authentication);
        refused(refusal)
    }
}

/// Who somebody is, if they are anybody in particular.
fn guest_of(checked: Result<Principal, Refusal>) -> Option<Guest> {
    let principal = checked.ok()?;
    (principal.kind != PrincipalKind::Local).then(|| guest(&principal))
}

/// Somebody who is known gets what they see, and comes in.
async fn welcomed(views: &Views, principal: &Principal) -> Admission {
    match views.provide(&principal.id).await {
        Ok(()) => Admission::Welcome(Some(guest(principal))),
        Err(error) => no_room(error),
    }
}

fn guest(principal: &Principal) -> Guest {
    let guest = Guest::new(principal.id.shared());
    let guest = match &principal.credential {
        Some(credential) => guest.by(Arc::clone(credential)),
        None => guest,
    };
    match principal.until {
        Some(until) => guest.until(until),
        None => guest,
    }
}

fn response(refusal: &Refusal) -> Response<Bytes> {
    let mut response = Response::new(refusal.body());
    *response.status_mut() = refusal.status();
    *response.headers_mut() = refusal.headers();
    response
}

fn refused(refusal: &Refusal) -> Admission {
    Admission::Refused(Box::new(response(refusal)))
}

fn no_room(error: NoView) -> Admission {
    let (status, code) = match error {
        NoView::TooMany | NoView::Busy => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        NoView::Unclear => (StatusCode::FORBIDDEN, "unclear_principal"),
    };
    let body = serde_json::json!({ "error": { "code": code, "message": error.to_string() } });
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let again = http::HeaderValue::from_static(COME_AGAIN_SECONDS);
        headers.insert(header::RETRY_AFTER, again);
    }
    let json = http::HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    Admission::Refused(Box::new(response))
}

/// What takes tokens of authorization servers, as the settings say.
fn resource_server(
    settings: &GatewayOAuth,
    workspace: &Workspace,
) -> Result<ResourceServer, CliError> {
    let from = settings.issuers.from.as_ref();
    let wrong = |message: String| {
        let error = CliError::new(Code::InvalidConfig, message);
        match from {
            Some(from) => error.hint(format!("[gateway.oauth] is written in {from}")),
            None => error,
        }
    };
    let jwks_uri = settings.jwks_uri.as_ref();
    let jwks_uri = jwks_uri.map(|uri| Url::parse(&uri.value)).transpose();
    let jwks_uri = jwks_uri
        .map_err(|error| wrong(format!("`gateway.oauth.jwks_uri` is no address: {error}")))?;
    let issuers = settings.issuers.value.iter().map(|issuer| IssuerOptions {
        issuer: issuer.clone(),
        jwks_uri: jwks_uri.clone(),
    });
    let audiences = settings.audiences.value.iter().cloned();
    let resource = &settings.resource.value;
    let address = Url::parse(resource)
        .map_err(|error| wrong(format!("`gateway.oauth.resource` is no address: {error}")))?;
    let algorithms = settings.algorithms.value.iter();
    let algorithms: Result<Vec<_>, _> = algorithms.map(|name| name.parse()).collect();
    let options = OAuthOptions {
        audiences: std::iter::once(resource.clone()).chain(audiences).collect(),
        resource: address,
        issuers: issuers.collect(),
        algorithms: algorithms
            .map_err(|error: cocode_access::UnknownAlgorithm| wrong(error.to_string()))?,
        principal_claim: settings.principal_claim.value.clone(),
        required_scopes: settings.required_scopes.value.clone(),
        admin_scope: settings
            .admin_scope
            .as_ref()
            .map(|scope| scope.value.clone()),
        leeway: settings.leeway.value,
    };
    let http = workspace.admissions()?.http();
    ResourceServer::new(options, http).map_err(|error| wrong(error.to_string()))
}
