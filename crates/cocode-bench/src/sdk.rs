//! The client of the official Rust SDK, over the same kind of pipes as the raw ones.

use rmcp::model::CallToolRequestParams;
use rmcp::service::{Peer, RoleClient, RunningService, ServiceExt as _};
use tokio::process::Child;

use crate::Failure;
use crate::caller::{Caller, Echo};
use crate::raw::child::Pipes;

/// The connection. Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct Sdk {
    service: RunningService<RoleClient, ()>,
    _child: Child,
}

/// One user of it.
#[derive(Clone, Debug)]
pub(crate) struct SdkCaller(Peer<RoleClient>);

impl Sdk {
    pub(crate) async fn start(n_tools: usize) -> Result<Self, Failure> {
        let Pipes {
            child,
            stdin,
            stdout,
        } = Pipes::start(n_tools)?;
        let service = ().serve((stdout, stdin)).await?;
        Ok(Self {
            service,
            _child: child,
        })
    }

    pub(crate) fn caller(&self) -> SdkCaller {
        SdkCaller(self.service.peer().clone())
    }

    /// Lists the tools and gives their number.
    pub(crate) async fn list(&self) -> Result<usize, Failure> {
        Ok(self.service.peer().list_tools(None).await?.tools.len())
    }
}

impl Caller for SdkCaller {
    async fn echo(&mut self, echo: &Echo) -> Result<usize, Failure> {
        let mut params = CallToolRequestParams::new("echo");
        params.arguments = Some(echo.object.clone());
        let result = self.0.call_tool(params).await?;
        let texts = result.content.iter().filter_map(|block| block.as_text());
        Ok(texts.map(|text| text.text.len()).sum())
    }
}
