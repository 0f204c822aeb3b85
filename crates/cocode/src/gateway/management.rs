//! How a gateway is looked after: its house, the API in front of it, and the pages that both are found
//! at.

use std::sync::Arc;

use bytes::Bytes;
use cocode_admin::model::Authentication;
use cocode_admin::{Admin, AdminOptions, Desk, House as _, Refusal, RefusalStatus, Who};
use cocode_config::Metrics;
use cocode_gateway::{Gateway, View};
use cocode_wire::serve::{Admitting, Endpoint, Page, PageBody, Site, Visit};
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use tokio::sync::{mpsc, watch};

use super::clients::Entry;
use super::door::FrontDoor;
use super::house::{Entrance, GatewayHouse, HouseParts};
use super::opening::Listening;
use super::oversight::Watch;
use super::plan::Plan;
use super::servers::Present;
use super::voice::Voice;
use crate::daemon::Floor;
use crate::error::{CliError, Code};
use crate::managing::Setup;
use crate::serving::gate::Rules;
use crate::workspace::Workspace;

/// What a gateway is looked after with.
pub(crate) struct Management {
    pub(crate) house: Arc<GatewayHouse>,
    pub(crate) pages: Arc<Pages>,
    /// Where it is told what is served.
    present: watch::Sender<Arc<Present>>,
    wants_end: mpsc::Receiver<()>,
}

impl Management {
    /// What clients need to get in. Those that an authorization server knows find out by themselves.
    pub(crate) fn entry(&self) -> Entry<'static> {
        match self.house.facts().authentication {
            Authentication::Tokens => Entry::ByToken,
            _ => Entry::Open,
        }
    }

    /// Has to be called within a runtime.
    pub(crate) fn new(
        (plan, setup, workspace): (&Plan, &Setup, &Workspace),
        (gateway, view, rules): (&Gateway, &View, &Arc<Rules>),
        door: &Arc<FrontDoor>,
        watch: &Watch,
        desk: Desk,
    ) -> Self {
        let before = Present::before(workspace.live().shared_config());
        let (present, presents) = watch::channel(Arc::new(before));
        // One that waits is as good as many.
        let (stop, wants_end) = mpsc::channel(1);
        let house = GatewayHouse::new(HouseParts {
            workspace: workspace.anew(),
            gateway: gateway.clone(),
            view: view.clone(),
            rules: Arc::<Rules>::clone(rules),
            present: presents.clone(),
            logs: setup.logs().clone(),
            bulletin: desk.bulletin.clone(),
            search: plan.search.options,
            tokens: Some(Arc::clone(door.tokens())),
            has_oauth: door.takes_access_tokens(),
            watch: watch.clone(),
            stop,
        });
        let options = AdminOptions {
            is_https: plan.http.tls.is_some(),
            site: plan.office_url.clone(),
            has_open_metrics: plan.metrics == Metrics::Open,
            ..AdminOptions::default()
        };
        let admin = Admin::new(Arc::<GatewayHouse>::clone(&house), desk, options);
        Self {
            house,
            pages: Arc::new(Pages {
                admin,
                door: Arc::clone(door),
                present: presents,
            }),
            present,
            wants_end,
        }
    }

    /// Clients can come in, and so can those who look after the gateway.
    pub(super) fn open(
        &self,
        plan: &Plan,
        voice: &Voice<'_>,
        listening: &Listening,
        floor: Arc<Floor>,
    ) {
        self.pages.admin.be_at_port(listening.office_port());
        self.house.open(Entrance {
            url: voice.url(),
            dashboard: listening.office_url(plan),
            door: listening.door(),
            floor,
        });
    }

    /// Where it is to be told what is served.
    pub(crate) fn present(&self) -> watch::Sender<Arc<Present>> {
        self.present.clone()
    }

    /// Somebody who looks after the gateway wants it to end. Cancel safe.
    pub(crate) async fn wants_end(&mut self) {
        if self.wants_end.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// The pages of a gateway: its dashboard, its API, and what machines look at.
pub(crate) struct Pages {
    admin: Admin,
    door: Arc<FrontDoor>,
    present: watch::Receiver<Arc<Present>>,
}

impl Pages {
    /// The API itself, for those who come by another way.
    pub(super) fn admin(&self) -> &Admin {
        &self.admin
    }

    /// A code to sign in with, once.
    pub(crate) fn new_code(&self) -> Result<String, CliError> {
        let code = self.admin.new_code().map_err(|refusal| {
            CliError::new(Code::SetupFailed, "no code to sign in with can be made")
                .because(&refusal)
        })?;
        Ok(code.code.expose().to_owned())
    }

    /// How large a body is that is taken in.
    pub(crate) fn body_limit(&self, visit: &Visit<'_>) -> usize {
        let is_known = visit.guest.is_some();
        self.admin
            .body_limit(visit.method, visit.path, visit.headers, is_known)
    }

    /// Any page.
    pub(crate) async fn answer(&self, request: Request<Bytes>) -> Response<PageBody> {
        if let Some(metadata) = self.door.metadata_at(request.uri().path()) {
            return json(metadata);
        }
        let config = Arc::clone(&self.present.borrow().config);
        let (headers, query) = (request.headers(), request.uri().query());
        match self.door.who(headers, query, &config).await {
            Ok(who) if is_admin(&who) => {
                let demoted = self.demoted(headers, query);
                let response = self.admin.answer(request, who).await;
                ending(response, demoted)
            }
            Ok(who) => self.admin.answer(request, who).await,
            Err(refusal) => {
                let mut page = told(&refusal).page();
                if let Some(challenge) = refusal.www_authenticate() {
                    let headers = page.headers_mut();
                    headers.insert(header::WWW_AUTHENTICATE, challenge.clone());
                }
                page
            }
        }
    }

    /// Ready when the configuration says of an administrator with a token that they are none any more.
    fn demoted(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (door, mut present) = (Arc::clone(&self.door), self.present.clone());
        let (headers, query) = (headers.clone(), query.map(str::to_owned));
        async move {
            while present.changed().await.is_ok() {
                let config = Arc::clone(&present.borrow_and_update().config);
                let who = door.who(&headers, query.as_deref(), &config).await;
                if !who.is_ok_and(|who| is_admin(&who)) {
                    return;
                }
            }
            // What ends the gateway ends its streams.
            std::future::pending::<()>().await;
        }
    }

    /// Only what those need who come from elsewhere: whether it is there, and where tokens are got.
    pub(crate) async fn answer_in_public(&self, request: Request<Bytes>) -> Response<PageBody> {
        let path = request.uri().path();
        let is_public = matches!(path, "/healthz" | "/readyz");
        if is_public || self.door.metadata_at(path).is_some() {
            return self.answer(request).await;
        }
        let text = "there is nothing here; MCP is at /mcp\n";
        let mut response = Response::new(PageBody::from(text));
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pages").finish_non_exhaustive()
    }
}

/// Whether somebody has shown the token of an administrator.
fn is_admin(who: &Who) -> bool {
    matches!(who, Who::Bearer { is_admin: true, .. })
}

/// The same answer, which ends at some time, if it goes on for as long as somebody listens.
fn ending(
    response: Response<PageBody>,
    end: impl Future<Output = ()> + Send + 'static,
) -> Response<PageBody> {
    if response.body().as_whole().is_some() {
        return response;
    }
    response.map(|body| PageBody::events(body.into_stream().take_until(Box::pin(end))))
}

/// A refusal of the door, as the API tells it.
fn told(refusal: &cocode_access::Refusal) -> Refusal {
    let status = match refusal.status() {
        StatusCode::UNAUTHORIZED => RefusalStatus::SignedOut,
        StatusCode::FORBIDDEN => RefusalStatus::Forbidden,
        StatusCode::TOO_MANY_REQUESTS => RefusalStatus::TooMany,
        StatusCode::SERVICE_UNAVAILABLE => RefusalStatus::Unavailable,
        _ => RefusalStatus::Malformed,
    };
    let advice = refusal.advice().map(str::to_owned);
    Refusal {
        retry_after: refusal.wait(),
        ..Refusal::new(status, refusal.code(), refusal.message()).hints(advice)
    }
}

fn json(text: Bytes) -> Response<PageBody> {
    let mut response = Response::new(PageBody::whole(text));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// The pages at an address of their own, where clients are not served.
#[derive(Debug)]
pub(crate) struct OfficeSite(pub(crate) Arc<Pages>);

impl Site for OfficeSite {
    fn admit<'a>(&'a self, visit: Visit<'a>) -> Admitting<'a> {
        self.0.door.recognise(&visit)
    }

    fn endpoint(&self, _name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        None
    }

    fn page_body(&self, visit: &Visit<'_>) -> usize {
        self.0.body_limit(visit)
    }

    fn too_large(&self, most: usize) -> Response<PageBody> {
        Admin::too_large(most)
    }

    fn page(&self, request: Request<Bytes>) -> Page<'_> {
        Box::pin(self.0.answer(request))
    }
}
