//! Tasks of many servers: `SERVER:ID`, the name of the server percent-encoded, and then the id that
//! the server gave.

use std::sync::Arc;

use cocode_client::{CallResult, Output};
use cocode_core::{ServerName, percent_encode};
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::greeting::TASKS;
use super::{Merged, uris};
use crate::deeds::Watched;
use crate::instance::Instance;
use crate::parked::missing_capability;
use crate::passing::pass;
use crate::reply::Reply;
use crate::request::Request;
use crate::view::{Entry, Inner};

impl Merged {
    /// Asks the server of a task about it.
    pub(super) async fn task(&self, request: &Request) -> Result<Reply, RpcError> {
        let view = self.view()?;
        if !request.caller.has_extension(TASKS) {
            let required = serde_json::json!({ "extensions": { TASKS: {} } });
            let missing = missing_capability("tasks are not declared by this client", &required);
            return Err(view.refuse(request, missing));
        }
        let found = request.params.as_ref().and_then(own_id);
        let found = found.and_then(|task| Some((view.entry(&task.server)?, task)));
        let Some((entry, OwnTask { server, id, params })) = found else {
            let unknown = RpcError::new(code::INVALID_PARAMS, "Unknown task");
            return Err(view.refuse(request, unknown));
        };
        let params = Some(params);
        let working = entry.tool_of_task(request, params.as_ref());
        let name = working.as_deref().unwrap_or(&id);
        let watched = view.watch(request, Some(&server), Some(name))?;
        let reply = self.task_at(&view, &entry, request, params).await;
        Watched::end(watched, reply.as_ref()).await;
        reply
    }

    async fn task_at(
        &self,
        view: &Inner,
        entry: &Entry,
        request: &Request,
        params: Option<RawJson>,
    ) -> Result<Reply, RpcError> {
        let instance = self.instance(entry, request).await?;
        let passed = Arc::clone(&instance);
        let reply = pass(passed, request, None, params, view.parking()).await;
        let server = &entry.spec.name;
        let Some(named) = reply.result().and_then(|result| named_in(server, &result)) else {
            return Ok(reply);
        };
        Ok(Reply::Result(limited(&instance, named).await))
    }
}

/// A task as its server knows it.
struct OwnTask {
    server: ServerName,
    id: String,
    /// What is said about it.
    params: RawJson,
}

/// What is known about a task, with its result within the limits if it has one.
async fn limited(instance: &Instance, task: RawJson) -> RawJson {
    let members = task.decode::<Members<'_>>().unwrap_or_default();
    let Some(result) = members.get("result") else {
        return task;
    };
    let whole = CallResult::parse(task.share(result));
    let limited = instance.manager().limit(instance.name(), "task", whole);
    match limited.await {
        (short, Output::Shortened { .. }) => task.with_part(result, &short.raw),
        _ => task,
    }
}

/// The task in some parameters, and these with the server's own id.
fn own_id(params: &RawJson) -> Option<OwnTask> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "taskId")]
        task: &'a RawValue,
    }
    let parts: Params<'_> = params.decode().ok()?;
    let task: String = serde_json::from_str(parts.task.get()).ok()?;
    let (server, id) = task.split_once(':')?;
    let own = RawJson::of(id).ok()?;
    Some(OwnTask {
        server: uris::decoded(server)?,
        params: params.with_part(parts.task, &own),
        id: id.to_owned(),
    })
}

/// A result whose task says which server it is of; nothing if it is of no task.
pub(super) fn named_in(server: &ServerName, result: &RawJson) -> Option<RawJson> {
    let members: Members<'_> = result.decode().ok()?;
    let task = members.get("taskId")?;
    let id: String = serde_json::from_str(task.get()).ok()?;
    let named = RawJson::of(&format!("{}:{id}", percent_encode(server.as_str()))).ok()?;
    Some(result.with_part(task, &named))
}

#[cfg(test)]
mod tests {
    use cocode_wire::RawJson;

    use super::{named_in, own_id};

    #[test]
    fn an_id_says_whose_it_is_and_leads_back() {
        let json = |text: &str| RawJson::parse(text.to_owned()).unwrap();
        let server = "a: b".parse().unwrap();
        let named = named_in(&server, &json(r#"{"x":1.10,"taskId": "7:8"}"#)).unwrap();
        assert_eq!(named.as_str(), r#"{"x":1.10,"taskId": "a%3A%20b:7:8"}"#);
        let own = own_id(&named).unwrap();
        assert_eq!((own.server, own.id.as_str()), (server.clone(), "7:8"));
        assert_eq!(own.params.as_str(), r#"{"x":1.10,"taskId": "7:8"}"#);
        assert!(named_in(&server, &json(r#"{"taskId":7}"#)).is_none());
        assert!(own_id(&json(r#"{"taskId":"7"}"#)).is_none());
    }
}
