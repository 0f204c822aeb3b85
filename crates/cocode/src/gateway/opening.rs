//! A gateway before it serves: what it is made of, and where it listens.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use cocode_admin::Desk;
use cocode_gateway::{Gateway, View, ViewOptions};
use cocode_wire::serve::{BindError, Door, HttpServer, HttpServerOptions, Site};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::agent::{self, AgentPlace};
use super::builtin::BuiltIn;
use super::connector::Ways;
use super::door::FrontDoor;
use super::inbox::DeskInbox;
use super::listen::found_at;
use super::management::{Management, OfficeSite};
use super::occupant;
use super::oversight::Watch;
use super::plan::Plan;
use super::site::Endpoints;
use super::views::{Views, Wish};
use crate::access::Access;
use crate::error::{CliError, Code};
use crate::managing::Setup;
use crate::reach::Configured;
use crate::records::Records;
use crate::serving::gate::Rules;
use crate::workspace::Workspace;

/// What was found out before there is a gateway: servers within this process, and who may come.
pub(super) struct Within {
    pub(super) built_in: Option<BuiltIn>,
    pub(super) agent: Option<AgentPlace>,
    /// Whether clients have to say who they are.
    pub(super) access: Access,
    pub(super) records: Arc<dyn Records>,
}

/// A gateway that listens, and answers nobody yet.
pub(super) struct Opened {
    pub(super) gateway: Gateway,
    pub(super) made: Made,
    pub(super) watch: Watch,
    pub(super) door: Arc<FrontDoor>,
    pub(super) management: Management,
    pub(super) views: (Arc<Views>, mpsc::Receiver<Wish>),
    pub(super) listening: Listening,
}

/// What its owner sees, and what that is made of.
pub(super) struct Made {
    pub(super) options: ViewOptions,
    pub(super) view: View,
    pub(super) ways: Arc<Ways>,
    pub(super) rules: Arc<Rules>,
}

/// Where it listens: for clients, and for those who look after it, if that is another place.
pub(super) struct Listening {
    server: HttpServer,
    office: Option<HttpServer>,
}

impl Opened {
    /// Listens as the plan says.
    pub(super) async fn open(
        plan: &Plan,
        within: Within,
        setup: &Setup,
        workspace: &Workspace,
    ) -> Result<Self, CliError> {
        let is_asked = within.access.is_asked();
        let gateway = Gateway::releasing_heap_with(cocode_process::release_free_heap);
        let desk = Desk::new();
        let records = Arc::clone(&within.records);
        let tokens = FrontDoor::tokens_of(&*records).await?;
        let watch = Watch::new(&desk.calls, is_asked, &tokens, &*records, workspace)?;
        watch.begin().await;
        let made = Made::new(plan, within, (&gateway, &watch, &desk), setup, workspace)?;
        let views = Views::new(made.view.clone());
        let door = FrontDoor::open(plan, is_asked, (&views.0, &desk.calls), tokens, workspace)?;
        let door = Arc::new(door);
        let about = (&gateway, &made.view, &made.rules);
        let management = Management::new((plan, setup, workspace), about, &door, &watch, desk);
        let listening = Listening::begin(plan, &*records, &views.0, &door, &management)?;
        made.ways.own.get_or_init(|| listening.address());
        Ok(Self {
            gateway,
            made,
            watch,
            door,
            management,
            views,
            listening,
        })
    }
}

impl Made {
    fn new(
        plan: &Plan,
        within: Within,
        (gateway, watch, desk): (&Gateway, &Watch, &Desk),
        setup: &Setup,
        workspace: &Workspace,
    ) -> Result<Self, CliError> {
        let config = workspace.config()?;
        let rules = Arc::new(Rules::of(config, None));
        let ways = Arc::new(Ways {
            configured: Arc::new(Configured::new(workspace)?),
            built_in: within.built_in.map(Arc::new),
            agent: within.agent,
            own: Arc::new(OnceLock::new()),
            principal: None,
        });
        let manager = setup.options(|options| {
            options.connector = Arc::<Ways>::clone(&ways);
            // Clients say what they want to hear.
            options.log_level = None;
            if ways.agent.is_some() {
                options.max_input_rounds = agent::MAX_INPUT_ROUNDS;
            }
        });
        let options = ViewOptions {
            manager,
            overseer: watch.over_owner(),
            inbox: Some(Arc::new(DeskInbox(desk.clone()))),
            gate: Arc::<Rules>::clone(&rules),
            prefix: plan.prefix,
            search: plan.search.options,
            first_list_timeout: config.settings.gateway.first_list_timeout.value,
            ..ViewOptions::default()
        };
        Ok(Self {
            view: gateway.view(options.clone()),
            options,
            ways,
            rules,
        })
    }
}

impl Listening {
    fn begin(
        plan: &Plan,
        records: &dyn Records,
        views: &Arc<Views>,
        door: &Arc<FrontDoor>,
        management: &Management,
    ) -> Result<Self, CliError> {
        let pages = Arc::clone(&management.pages);
        let has_office = plan.office.is_none();
        let site = Endpoints::new(Arc::clone(views), Arc::clone(door), pages, has_office);
        let mut options = if has_office {
            plan.office_http()
        } else {
            plan.http.clone()
        };
        options.sessions = records.sessions();
        let server = bound(options, Arc::new(site))?;
        let office = plan.office.map(|address| {
            let mut options = plan.office_http();
            options.listen = address;
            // Nobody has a session there.
            bound(options, Arc::new(OfficeSite(Arc::clone(&management.pages))))
        });
        Ok(Self {
            server,
            office: office.transpose()?,
        })
    }

    /// Where clients find it.
    pub(super) fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Where those find it who look after it.
    pub(super) fn office_url(&self, plan: &Plan) -> String {
        if let Some(url) = &plan.office_url {
            return url.to_string();
        }
        let server = self.office.as_ref().unwrap_or(&self.server);
        format!("{}://{}/", plan.scheme(), found_at(server.local_addr()))
    }

    /// The port of that.
    pub(super) fn office_port(&self) -> u16 {
        let server = self.office.as_ref().unwrap_or(&self.server);
        server.local_addr().port()
    }

    /// A hand on what clients have open, and those who look after it.
    pub(super) fn door(&self) -> Door {
        let door = self.server.door();
        match &self.office {
            Some(office) => door.and(office.door()),
            None => door,
        }
    }

    /// Serves until it is to stop, and what was begun is finished.
    pub(super) fn serve(self, stop: &CancellationToken) -> JoinSet<()> {
        let mut serving = JoinSet::new();
        for server in std::iter::once(self.server).chain(self.office) {
            serving.spawn(server.serve(stop.clone().cancelled_owned()));
        }
        serving
    }
}

fn bound(options: HttpServerOptions, site: Arc<dyn Site>) -> Result<HttpServer, CliError> {
    HttpServer::bind(options, site).map_err(|error| match &error {
        BindError::Listen { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
            in_use(*address)
        }
        other => CliError::new(Code::SetupFailed, "the gateway cannot listen").because(other),
    })
}

fn in_use(address: std::net::SocketAddr) -> CliError {
    let occupant = occupant::of(address);
    let whose = match &occupant {
        Some(occupant) => format!(
            "`{}` (process {}) listens there",
            occupant.program, occupant.pid
        ),
        None => "another program listens there".to_owned(),
    };
    let message = format!("the address {address} is taken: {whose}");
    let mut error = CliError::new(Code::AddressInUse, message);
    if occupant.is_some_and(|occupant| occupant.program == "cocode") {
        error = error.hint(format!(
            "a gateway may be running already: see http://{address}/"
        ));
    }
    error
        .hint("`--listen :0` takes any free port, `--listen :PORT` another one")
        .hint("`listen` in [gateway] of config.toml chooses one for always")
}
