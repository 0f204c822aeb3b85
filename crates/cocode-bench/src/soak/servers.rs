//! All servers of the soak, by number.

use cocode_client::Manager;
use cocode_core::{Reach, RemoteTransport, ServerName, ServerSpec};

use super::farm::{Farm, Transport, script};
use crate::Failure;
use crate::managed::ourselves;

/// As long as a start may take on a machine that is busy with ten thousand calls.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(1);

/// One server.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) spec: ServerSpec,
    /// The name of its only tool.
    pub(crate) tool: String,
    pub(crate) transport: Transport,
    /// Its number on the farm, if it is there.
    pub(crate) plant: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Fleet {
    members: Vec<Member>,
}

impl Fleet {
    pub(crate) fn start(n_servers: usize, mark: &str) -> Result<(Farm, Self), Failure> {
        let mix: Vec<Transport> = Transport::MIX.into_iter().cycle().take(n_servers).collect();
        let remote: Vec<Transport> = mix
            .iter()
            .copied()
            .filter(|transport| *transport != Transport::Stdio)
            .collect();
        let (farm, addresses) = Farm::start(mark, &remote)?;
        let mut addresses = addresses.into_iter().enumerate();
        let mut members = Vec::new();
        for (number, transport) in mix.into_iter().enumerate() {
            let name = format!("{}-{number}", transport.name());
            let (mut spec, plant) = if transport == Transport::Stdio {
                let script = serde_json::to_string(&script(transport, number))?;
                let words = ["soak-server", mark, "--script", &script];
                (ourselves(&name, &words)?, None)
            } else {
                let (plant, address) = addresses.next().ok_or("the farm is too small")?;
                (ServerSpec::remote(name.parse()?, address), Some(plant))
            };
            if let Reach::Remote(remote) = &mut spec.reach
                && remote.transport == RemoteTransport::HttpWithFallback
            {
                remote.transport = RemoteTransport::Http;
            }
            spec.startup_timeout = PATIENCE;
            members.push(Member {
                tool: format!("mcp__{name}__echo"),
                spec,
                transport,
                plant,
            });
        }
        Ok((farm, Self { members }))
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(crate) fn specs(&self) -> Vec<ServerSpec> {
        let specs = self.members.iter().map(|member| member.spec.clone());
        specs.collect()
    }
}

impl Member {
    pub(crate) fn name(&self) -> &ServerName {
        &self.spec.name
    }

    /// The process of a program that is ready now.
    pub(crate) fn pid(&self, manager: &Manager) -> Option<u32> {
        let all = manager.status();
        let own = all.iter().find(|status| &status.name == self.name())?;
        let is_ready = matches!(own.state, cocode_client::ServerState::Ready);
        own.connection.as_ref()?.pid.filter(|_| is_ready)
    }
}
