//! What is done with a server as a whole: switched on and off in its file, connected and disconnected
//! where it runs.

use std::time::Duration;

use cocode_admin::model::Server;
use cocode_admin::{Refusal, RefusalStatus, Switch};
use cocode_core::ServerSpec;
use cocode_gateway::Running;
use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use super::interior::Interior;
use crate::manage::enable;

/// How long somebody waits for a server to be there; what takes longer goes on without them.
const CONNECTED_WITHIN: Duration = Duration::from_mins(1);
/// How long somebody waits for a server to end.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// What is written down of it.
pub(super) fn act_of(switch: Switch) -> &'static str {
    match switch {
        Switch::Enable => "servers/enable",
        Switch::Disable => "servers/disable",
        Switch::Connect => "servers/connect",
        Switch::Disconnect => "servers/disconnect",
        Switch::Restart => "servers/restart",
    }
}

impl Interior {
    pub(super) async fn switch(&self, name: &str, switch: Switch) -> Result<Server, Refusal> {
        match switch {
            Switch::Enable => self.enable(name, true).await?,
            Switch::Disable => self.enable(name, false).await?,
            Switch::Connect => self.connect(&self.served(name)?).await,
            Switch::Disconnect => self.disconnect(&self.served(name)?).await,
            Switch::Restart => self.restart(&self.served(name)?).await,
        }
        self.server(name)
    }

    async fn enable(&self, name: &str, enabled: bool) -> Result<(), Refusal> {
        self.is_not_built_in(name)?;
        let server = name.to_owned();
        let switched = self.change(name, move |workspace| {
            enable::switch(&server, enabled, workspace)
        });
        switched.await.map(drop)
    }

    /// Refuses to change a server that stands in no file.
    pub(super) fn is_not_built_in(&self, name: &str) -> Result<(), Refusal> {
        let present = self.present();
        if !present.built_in.iter().any(|own| own.as_str() == name) {
            return Ok(());
        }
        let message = format!("server `{name}` is part of the gateway, and stands in no file");
        Err(Refusal::new(RefusalStatus::Conflict, "built-in", message)
            .hint("start the gateway with other options to be without it"))
    }

    /// What becomes of it, its state tells.
    pub(super) async fn connect(&self, spec: &ServerSpec) {
        let Some(manager) = self.view.manager(&spec.name) else {
            return;
        };
        let deadline = Instant::now() + CONNECTED_WITHIN;
        if let Err(error) = manager.session(&spec.name, deadline).await {
            tracing::debug!(server = %spec.name, %error, "not connected");
        }
    }

    async fn disconnect(&self, spec: &ServerSpec) {
        let running = self.running(spec);
        let stopping = running.iter().map(|running| async {
            if let Err(error) = running.manager().stop(&spec.name).await {
                tracing::debug!(server = %spec.name, %error, "not disconnected");
            }
        });
        if timeout(STOPPED_WITHIN, join_all(stopping)).await.is_err() {
            tracing::warn!(server = %spec.name, "a server takes long to end");
        }
    }

    /// Begins anew for everybody, also those who have a process of their own.
    pub(super) async fn restart(&self, spec: &ServerSpec) {
        let running = self.running(spec);
        let restarting = running.iter().map(|running| async {
            if let Err(error) = running.restart().await {
                tracing::debug!(server = %spec.name, %error, "not started anew");
            }
        });
        if timeout(STOPPED_WITHIN, join_all(restarting)).await.is_err() {
            tracing::warn!(server = %spec.name, "a server takes long to begin anew");
        }
        self.connect(spec).await;
    }

    /// All processes of a server, whomever they are for.
    fn running(&self, spec: &ServerSpec) -> Vec<Running> {
        let running = self.gateway.running().into_iter();
        running
            .filter(|running| running.spec.name == spec.name)
            .collect()
    }
}
