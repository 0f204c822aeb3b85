//! Calls tools, reads resources and gets prompts for those who look after the gateway: as a client of
//! it, through the same gate and under the same eyes as everybody.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cocode_access::PrincipalId;
use cocode_admin::model::{
    CallProgress, CallWish, LogLine, LogStream, PromptWish, ServerState, Verdict,
};
use cocode_admin::{CallListener, CallNews, Caller, Moment, Refusal, RefusalStatus};
use cocode_client::{ListKind, RawJson, RpcError};
use cocode_core::{ServerSpec, nearest};
use cocode_gateway::{Deed, Hearing, InnerClient, Outcome, Overseer as _, View};
use cocode_wire::code;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::auditing::CLIENT;
use super::interior::Interior;
use super::refusing::{not_served, refusal};
use crate::error::{CliError, Code};
use crate::gateway::oversight::{LIMIT_REACHED, Watch};
use crate::text::{cut, either};

/// The longest that anybody waits for a result.
const LONGEST_CALL: Duration = Duration::from_hours(1);
/// How long reading a resource or getting a prompt may take, the start of its server included.
const ANSWERED_WITHIN: Duration = Duration::from_secs(110);
/// Administrators whose clients are kept, with the processes that these have to themselves.
const MAX_CALLERS: usize = 16;
/// Characters of a log message that are passed on.
const MAX_LOG_CHARACTERS: usize = 16_000;
/// Characters of what a server says about its failure.
const MAX_ERROR_CHARACTERS: usize = 4000;

/// A client of the gateway for each of those who look after it, so that a server which has a process
/// for each client has one for them, too. The last that was used is the last here.
#[derive(Debug, Default)]
pub(super) struct Callers(Mutex<VecDeque<(Arc<str>, Arc<InnerClient>)>>);

impl Callers {
    fn of(&self, by: &Caller, view: &View, watch: &Watch) -> Arc<InnerClient> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.iter().position(|(name, _)| *name == by.name);
        let known = place.and_then(|place| all.remove(place));
        let (name, client) = known.unwrap_or_else(|| {
            let client = view.caller(format!("cocode management API ({})", by.name));
            let client = client.watched_by(watch.over(principal_of(by)));
            (Arc::clone(&by.name), Arc::new(client))
        });
        all.push_back((name, Arc::clone(&client)));
        let oldest = (all.len() > MAX_CALLERS).then(|| all.pop_front());
        drop(all);
        // Ends what it has open, where nothing is locked.
        drop(oldest);
        client
    }
}

#[derive(Serialize)]
struct ToolParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
}

#[derive(Serialize)]
struct PromptParams<'a> {
    name: &'a str,
    arguments: &'a BTreeMap<String, String>,
}

impl Interior {
    pub(super) async fn call(
        &self,
        by: &Caller,
        name: &str,
        wish: CallWish,
        listener: CallListener,
    ) -> Result<RawJson, Refusal> {
        let spec = self.served(name)?;
        if let Err((outcome, refusal)) = self.may_call(&spec, &wish.tool) {
            return Err(self
                .turned_away(by, &spec, &wish, outcome)
                .unwrap_or(refusal));
        }
        let empty = RawValue::from_string("{}".to_owned()).map_err(|error| unwritable(&error))?;
        let arguments = match &wish.arguments {
            Some(arguments) => arguments
                .decode::<&RawValue>()
                .map_err(|error| unwritable(&error))?,
            None => &*empty,
        };
        let params = RawJson::of(&ToolParams {
            name: &wish.tool,
            arguments,
        });
        let limit = wish
            .timeout_seconds
            .map(|seconds| Duration::from_secs(seconds.get().into()));
        let asked = Asked {
            method: "tools/call",
            params: params.map_err(|error| unwritable(&error))?,
            limit: limit.unwrap_or(LONGEST_CALL).min(LONGEST_CALL),
            hearing: Some(hearing(listener)),
        };
        self.ask(by, &spec, asked).await
    }

    pub(super) async fn read(
        &self,
        by: &Caller,
        name: &str,
        uri: String,
    ) -> Result<RawJson, Refusal> {
        let spec = self.served(name)?;
        let params = RawJson::of(&serde_json::json!({ "uri": uri }));
        let asked = Asked::quick(
            "resources/read",
            params.map_err(|error| unwritable(&error))?,
        );
        self.ask(by, &spec, asked).await
    }

    pub(super) async fn prompt(
        &self,
        by: &Caller,
        name: &str,
        wish: PromptWish,
    ) -> Result<RawJson, Refusal> {
        let spec = self.served(name)?;
        let params = RawJson::of(&PromptParams {
            name: &wish.name,
            arguments: &wish.arguments.unwrap_or_default(),
        });
        let asked = Asked::quick("prompts/get", params.map_err(|error| unwritable(&error))?);
        self.ask(by, &spec, asked).await
    }

    /// Writes down a call that nobody will make. Gives another reason for that, if there is one.
    fn turned_away(
        &self,
        by: &Caller,
        spec: &ServerSpec,
        wish: &CallWish,
        outcome: Outcome,
    ) -> Option<Refusal> {
        let begun = self.watch.over(principal_of(by)).begin(&Deed {
            principal: None,
            method: "tools/call",
            server: Some(&spec.name),
            is_served: false,
            goes_on: false,
            name: &wish.tool,
            arguments: wish.arguments.as_ref(),
            client: Some(CLIENT),
        });
        match begun {
            Ok(ongoing) => {
                ongoing.ended(outcome);
                None
            }
            Err(error) => Some(self.failed(spec, &error)),
        }
    }

    /// Refuses a tool that is not there, or that rules deny, in words that clients are not told.
    fn may_call(&self, spec: &ServerSpec, tool: &str) -> Result<(), (Outcome, Refusal)> {
        let unknown = |message: &str| Outcome::Error {
            code: code::INVALID_PARAMS,
            message: message.to_owned(),
        };
        let Some(manager) = self.view.manager(&spec.name) else {
            let refusal = not_served(&self.present(), spec.name.as_str());
            return Err((unknown(&refusal.message), refusal));
        };
        let catalog = manager.catalog();
        let listed = catalog.server(&spec.name);
        let listed = listed.filter(|listed| listed.known.contains(&ListKind::Tools));
        let Some(listed) = listed else {
            // The server will say.
            return Ok(());
        };
        let found = listed.tools.iter().find(|one| one.name.as_str() == tool);
        let Some(found) = found else {
            let message = format!("server `{}` has no tool of this name", spec.name);
            let error = CliError::new(Code::UnknownTool, message);
            let names = listed.tools.iter().map(|tool| tool.name.as_str());
            let near = nearest(tool, names).into_iter();
            let near: Vec<String> = near.map(|name| format!("`{name}`")).collect();
            let refusal = refusal(match near.as_slice() {
                [] => error,
                near => error.hint(format!("did you mean {}?", either(near))),
            });
            return Err((unknown(&refusal.message), refusal));
        };
        if self.verdict(spec, found) != Verdict::Deny {
            return Ok(());
        }
        let message = format!(
            "rules or filters deny the tool `{tool}` of server `{}`",
            spec.name
        );
        let error = CliError::new(Code::PermissionDenied, message);
        let hint = format!("`cocode permissions test {} {tool}` says which", spec.name);
        Err((Outcome::Denied, refusal(error.hint(hint))))
    }

    async fn ask(&self, by: &Caller, spec: &ServerSpec, asked: Asked) -> Result<RawJson, Refusal> {
        let Asked {
            method,
            params,
            limit,
            hearing,
        } = asked;
        let client = self.callers.of(by, &self.view, &self.watch);
        let answer = client.request(method, Some(&params), Some(&spec.name), hearing);
        let answer = timeout(limit, answer).await.map_err(|_elapsed| {
            let seconds = limit.as_secs();
            let message = format!("server `{}` did not answer within {seconds} s", spec.name);
            Refusal::new(RefusalStatus::ServerFailed, "request-timeout", message)
        })?;
        answer.map_err(|error| self.failed(spec, &error))
    }

    /// Why there is no answer. If the server is not there, that says more than what a client is told.
    fn failed(&self, spec: &ServerSpec, error: &RpcError) -> Refusal {
        if let Some(refusal) = limited(error) {
            return refusal;
        }
        let code = error.code;
        let said = cut(&error.message, MAX_ERROR_CHARACTERS);
        let message = format!("server `{}` gave error {code}: {said}", spec.name);
        let refusal = Refusal::new(RefusalStatus::ServerFailed, "server-error", message);
        let server = self.server(spec.name.as_str());
        let reason = server
            .ok()
            .filter(|server| server.state != ServerState::Ready);
        match reason.and_then(|server| server.reason) {
            Some(reason) => Refusal {
                code: reason.code,
                ..refusal.hint(reason.message).hints(reason.hints)
            },
            None => refusal,
        }
    }
}

/// As whom somebody who looks after the gateway calls tools: what they do is theirs, though they see
/// what its owner sees.
fn principal_of(by: &Caller) -> PrincipalId {
    by.name
        .parse()
        .unwrap_or_else(|_nobodys| PrincipalId::local())
}

/// A limit that was reached, if that is why there is no answer.
fn limited(error: &RpcError) -> Option<Refusal> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        reason: String,
        retry_after_seconds: u64,
    }
    let data: Data = error.data.as_ref()?.decode().ok()?;
    let is_limit = data.reason == LIMIT_REACHED;
    is_limit.then(|| {
        let wait = Duration::from_secs(data.retry_after_seconds);
        Refusal::new(RefusalStatus::TooMany, LIMIT_REACHED, error.message.clone()).retry_after(wait)
    })
}

/// Something that is asked of a server.
struct Asked {
    method: &'static str,
    params: RawJson,
    limit: Duration,
    hearing: Option<Hearing>,
}

impl Asked {
    fn quick(method: &'static str, params: RawJson) -> Self {
        Self {
            method,
            params,
            limit: ANSWERED_WITHIN,
            hearing: None,
        }
    }
}

fn unwritable(error: &serde_json::Error) -> Refusal {
    let message = format!("this cannot be written as JSON: {error}");
    Refusal::new(RefusalStatus::Unfit, "invalid-arguments", message)
}

/// Passes on what is told during a call.
fn hearing(listener: CallListener) -> Hearing {
    Arc::new(move |method: &str, params: Option<&RawJson>| {
        let news = match method {
            "notifications/progress" => params.and_then(progress).map(CallNews::Progress),
            "notifications/message" => params.and_then(logged).map(CallNews::Log),
            _ => None,
        };
        if let Some(news) = news {
            listener.tell(news);
        }
    })
}

fn progress(params: &RawJson) -> Option<CallProgress> {
    #[derive(Deserialize)]
    struct Told {
        progress: f64,
        #[serde(default)]
        total: Option<f64>,
        #[serde(default)]
        message: Option<String>,
    }
    let told: Told = params.decode().ok()?;
    Some(CallProgress {
        progress: told.progress,
        total: told.total,
        message: told.message.map(|text| cut(&text, MAX_LOG_CHARACTERS)),
    })
}

fn logged(params: &RawJson) -> Option<LogLine> {
    #[derive(Deserialize)]
    struct Told<'a> {
        level: String,
        #[serde(default)]
        logger: Option<String>,
        #[serde(borrow)]
        data: &'a RawValue,
    }
    let told: Told<'_> = params.decode().ok()?;
    let text: Result<String, _> = serde_json::from_str(told.data.get());
    let text = text.unwrap_or_else(|_no_text| told.data.get().to_owned());
    let text = match told.logger {
        Some(logger) => format!("{logger}: {text}"),
        None => text,
    };
    Some(LogLine {
        at: Moment::now(),
        stream: LogStream::Log,
        level: Some(told.level),
        text: cut(&text, MAX_LOG_CHARACTERS),
    })
}

#[cfg(test)]
mod tests {
    use cocode_admin::model::CallProgress;
    use cocode_client::RawJson;

    use super::{logged, progress};

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn what_servers_tell_during_a_call_is_read_as_far_as_it_makes_sense() {
        let told = progress(&raw(r#"{"progressToken": 1, "progress": 2, "total": 4.5}"#));
        let expected = CallProgress {
            progress: 2.0,
            total: Some(4.5),
            message: None,
        };
        assert_eq!(told, Some(expected));
        assert_eq!(progress(&raw(r#"{"progress": "much"}"#)), None);
        let line = logged(&raw(
            r#"{"level": "info", "logger": "db", "data": {"a": 1}}"#,
        ))
        .unwrap();
        assert_eq!(line.level.as_deref(), Some("info"));
        assert_eq!(line.text, r#"db: {"a": 1}"#);
        let line = logged(&raw(r#"{"level": "info", "data": "plain"}"#)).unwrap();
        assert_eq!(line.text, "plain");
        assert!(logged(&raw(r#"{"data": "no level"}"#)).is_none());
    }
}
