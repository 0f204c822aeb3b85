//! Which connection to a server a request goes to.

use std::sync::Arc;

use cocode_core::{Era, Protocol};
use cocode_wire::RpcError;

use super::{Entry, Inner};
use crate::caller::{Caller, needs_session};
use crate::downstream::Downstream;
use crate::instance::Instance;

impl Inner {
    /// The server for a request: the one that everybody shares, unless this client has or needs one
    /// of its own. Servers that ask their clients without saying whom would ask the wrong one.
    /// Sessions share the legacy connection of a dual-era server.
    pub(crate) async fn instance_for(
        &self,
        entry: &Entry,
        client: &Arc<Downstream>,
        caller: &Caller,
    ) -> Result<Arc<Instance>, RpcError> {
        let shared = || Ok(Arc::clone(&entry.instance));
        let is_session = client.is_session() && caller.era() == Era::Legacy;
        if entry.is_per_session() {
            // Requests of the stateless era have at least their connection in common.
            if !client.is_session() {
                return Err(needs_session(entry, caller));
            }
        } else if !is_session {
            return shared();
        }
        if let Some(decided) = client.served_by(entry) {
            return Ok(decided);
        }
        if !entry.is_per_session() {
            // Most servers have sent the requests of their startup by then.
            let peer = self.legacy_peer(entry).await?;
            let instance = Arc::clone(peer.as_ref().unwrap_or(&entry.instance));
            if !instance.traffic.asks().and(caller.can).any() {
                let is_peer = peer.is_some();
                client.decide(entry, peer);
                if is_peer {
                    client.release(&self.servers());
                    self.attend(Some(client));
                    // Before the request that this is about.
                    Box::pin(instance.ask_for_level()).await;
                }
                return Ok(instance);
            }
        }
        // The semaphore is never closed. A waiter may find the instance that it waited for.
        let _one_at_a_time = client.starting.acquire().await.ok();
        if let Some(decided) = client.served_by(entry) {
            return Ok(decided);
        }
        let mut spec = (*entry.spec).clone();
        if is_session && let Ok(Some(_peer)) = self.legacy_peer(entry).await {
            spec.protocol = Protocol::Legacy;
        }
        let license = self
            .licenses
            .take(&spec.name, self.options.max_own_servers)?;
        let owner = Some((client, caller));
        let own = Instance::start(spec, &self.options.manager, owner, &self.core.reaper);
        // Rare, and kept out of the size of every request.
        let own = Box::pin(own).await;
        own.keep(license);
        client.decide(entry, Some(Arc::clone(&own)));
        // A concurrent change of the servers did not see it.
        client.release(&self.servers());
        self.attend(Some(client));
        tracing::info!(server = %entry.spec.name, "a client has a server of its own");
        Ok(own)
    }

    /// The connection of a server that its legacy clients share, unless they use that of everybody.
    pub(crate) async fn legacy_peer(
        &self,
        entry: &Entry,
    ) -> Result<Option<Arc<Instance>>, RpcError> {
        let (options, reaper) = (&self.options.manager, &self.core.reaper);
        // Rare, and kept out of the size of every request.
        Box::pin(entry.instance.legacy_peer(options, reaper)).await
    }
}
