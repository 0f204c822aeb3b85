//! One request of a client, on its way through the gateway.

use std::sync::{Arc, OnceLock};

use cocode_core::ServerName;
use cocode_wire::serve::Sink;
use cocode_wire::{RawJson, RpcError, code};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::caller::Caller;
use crate::deeds::Slot;
use crate::downstream::Downstream;
use crate::progress::ClientProgress;
use crate::reply::Reply;
use crate::said::Said;
use crate::witness::CallWitness;

/// A request, with everything that is known about it.
pub(crate) struct Request {
    /// Its id, as its client wrote it.
    pub(crate) id: RawJson,
    /// What is asked.
    pub(crate) method: String,
    /// Its parameters as they came.
    pub(crate) params: Option<RawJson>,
    /// What they say.
    pub(crate) said: Said,
    /// The headers it came with, where it came over HTTP.
    pub(crate) headers: HeaderMap,
    /// Leads to the client, ahead of the answer.
    pub(crate) stream: Arc<dyn Sink>,
    /// Progress reports to the client, if it sent a progress token.
    pub(crate) progress: Option<Arc<ClientProgress>>,
    /// Who asks.
    pub(crate) caller: Arc<Caller>,
    /// In which conversation.
    pub(crate) from: Arc<Downstream>,
    /// Requests of the same number belong to the same session.
    pub(crate) session: u64,
    /// What somebody watches it as, once it is clear what it is for.
    pub(crate) deed: OnceLock<Arc<Slot>>,
}

impl Request {
    /// What a tool is called with. What would be read in two ways is refused: what is checked, or shown to
    /// whoever is to allow it, has to be what is sent.
    pub(crate) fn arguments(&self) -> Result<Option<RawJson>, RpcError> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, default)]
            arguments: Option<&'a RawValue>,
        }
        let Some(params) = self.params.as_ref() else {
            return Ok(None);
        };
        let parts: Params<'_> = params
            .decode()
            .map_err(|error| RpcError::new(code::INVALID_PARAMS, error.to_string()))?;
        Ok(parts.arguments.map(|arguments| params.share(arguments)))
    }

    /// Tells the overseer what came of asking somebody about this call: it was refused, goes on, or its client
    /// is to ask.
    pub(crate) fn unless_refused(
        &self,
        asked: Result<Option<Reply>, RpcError>,
    ) -> Result<Option<Reply>, RpcError> {
        if let Some(deed) = self.deed.get() {
            match &asked {
                Err(_refused) => deed.denied(),
                Ok(None) => deed.allowed(),
                Ok(Some(_question)) => {}
            }
        }
        asked
    }

    /// The client's side of this request, at this server, where it calls this tool.
    pub(crate) fn witness(&self, server: &ServerName, tool: Option<&str>) -> Arc<CallWitness> {
        self.witness_of(server, tool, &self.caller)
    }

    /// The same for a client of whom something else is known.
    pub(crate) fn witness_of(
        &self,
        server: &ServerName,
        tool: Option<&str>,
        caller: &Arc<Caller>,
    ) -> Arc<CallWitness> {
        CallWitness::new(self, caller, server, tool)
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Request")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
