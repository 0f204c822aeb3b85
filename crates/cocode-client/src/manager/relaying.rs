//! Requests that a manager passes on for somebody else.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cocode_core::{ServerName, ToolName};
use cocode_wire::Frame;
use tokio::time::Instant;

use super::attempts::{RepeatableRequest, RetryTiming, attempts};
use super::call_error::CallError;
use super::call_events::Telling;
use super::events::CallId;
use super::find::find_in;
use super::{Manager, Server};
use crate::clock::Deadlines;
use crate::error::RequestError;
use crate::features::Annotations;
use crate::relay::Relayed;
use crate::session::Session;

impl Manager {
    /// Passes a request on to a server, which is started or waited for if it has to be. What was
    /// answered is given as it came. A call is repeated where its tool says that this does no harm, as
    /// [`Manager::call`] does; any other request only if it never reached the server.
    /// `tool` is the tool that it calls, if it calls one: then it is told of as any other call is.
    pub async fn relay(
        &self,
        server: &ServerName,
        tool: Option<&str>,
        relayed: &Relayed<'_>,
    ) -> Result<Frame, CallError> {
        let shared = self.shared();
        let begun = Instant::now();
        let server = self.server(server)?;
        let _in_use = server.in_use();
        let work = RelayWork {
            server: &server,
            tool,
            relayed,
        };
        let timing = RetryTiming {
            begun,
            deadlines: relayed.deadlines,
            backoff: shared.options.health.reconnect,
        };
        // Two boxed futures of moderate size are cheaper to allocate than one large one.
        let attempts = Box::pin(attempts(&server, &work, timing));
        let Some(tool) = tool else {
            return attempts.await.map(|(frame, _)| frame);
        };
        let tool = ToolName::new(tool);
        let call = CallId(shared.calls.fetch_add(1, Ordering::Relaxed));
        let mut telling = Telling::begin(shared, &server, &tool, (call, begun), None);
        let outcome = attempts.await.map(|(frame, _)| frame);
        telling.finish_relayed(&outcome);
        outcome
    }
}

/// Relayed request of a downstream client.
struct RelayWork<'a> {
    server: &'a Arc<Server>,
    tool: Option<&'a str>,
    relayed: &'a Relayed<'a>,
}

impl RepeatableRequest for RelayWork<'_> {
    type Answer = Frame;

    fn annotations(&self) -> Annotations {
        let tool = self.tool.and_then(|tool| find_in(self.server, tool));
        tool.map(|tool| tool.annotations()).unwrap_or_default()
    }

    async fn send(&self, session: &Session, deadlines: Deadlines) -> Result<Frame, RequestError> {
        let relayed = Relayed {
            deadlines,
            ..self.relayed.clone()
        };
        session.relay(&relayed).await
    }

    fn repeats(&self, error: &RequestError) {
        self.relayed.witness.repeats(error);
    }

    fn failed(&self, error: RequestError) -> CallError {
        CallError::Asking {
            server: self.server.name.clone(),
            what: self.relayed.method.to_owned(),
            error,
        }
    }
}
