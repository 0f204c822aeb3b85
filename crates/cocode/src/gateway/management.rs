//! How a gateway is looked after: its house, the API in front of it, and the pages that both are found
//! at.

use std::sync::Arc;

use bytes::Bytes;
use cocode_admin::{Admin, AdminOptions, Desk};
use cocode_gateway::View;
use cocode_wire::serve::{Admission, Admitting, Endpoint, Page, PageBody, Site, Visit};
use http::{HeaderValue, Request, Response, header};
use tokio::sync::{mpsc, watch};

use super::door::{FrontDoor, response};
use super::house::{GatewayHouse, HouseParts};
use super::oversight::Watch;
use super::plan::Plan;
use super::servers::Present;
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
    /// Has to be called within a runtime.
    pub(crate) fn new(
        (plan, setup, workspace): (&Plan, &Setup, &Workspace),
        (view, rules): (&View, &Arc<Rules>),
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
            view: view.clone(),
            rules: Arc::<Rules>::clone(rules),
            present: presents.clone(),
            logs: setup.logs().clone(),
            bulletin: desk.bulletin.clone(),
            search: plan.search.options,
            tokens: Some(Arc::clone(door.tokens())),
            has_oauth: door.takes_access_tokens(),
            audit: watch.audit.as_ref().map(|audit| Arc::clone(&audit.log)),
            stop,
        });
        let options = AdminOptions {
            is_https: plan.http.tls.is_some(),
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
    /// A code to sign in with, once.
    pub(crate) fn new_code(&self) -> Result<String, CliError> {
        let code = self.admin.new_code().map_err(|refusal| {
            CliError::new(Code::SetupFailed, "no code to sign in with can be made")
                .because(&refusal)
        })?;
        Ok(code.code.expose().to_owned())
    }

    /// Any page.
    pub(crate) async fn answer(&self, request: Request<Bytes>) -> Response<PageBody> {
        if let Some(metadata) = self.door.metadata_at(request.uri().path()) {
            return json(metadata);
        }
        let config = Arc::clone(&self.present.borrow().config);
        let (headers, query) = (request.headers(), request.uri().query());
        match self.door.who(headers, query, &config).await {
            Ok(who) => self.admin.answer(request, who).await,
            Err(refusal) => response(&refusal).map(PageBody::whole),
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
        *response.status_mut() = http::StatusCode::NOT_FOUND;
        response
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pages").finish_non_exhaustive()
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
    fn admit<'a>(&'a self, _visit: Visit<'a>) -> Admitting<'a> {
        // Pages look themselves at who comes.
        Admitting::Now(Admission::Welcome(None))
    }

    fn endpoint(&self, _name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        None
    }

    fn page(&self, request: Request<Bytes>) -> Page<'_> {
        Box::pin(self.0.answer(request))
    }
}
