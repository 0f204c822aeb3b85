//! The two tools of clients that search: `tool_search`, which needs no server, and `tool_call`, which
//! goes the way of any call.

use std::sync::Arc;

use cocode_client::ListKind;
use cocode_core::{
    DEFAULT_FOUND, Era, FoundDetail, FoundText, Hit, MAX_FOUND, TOOL_CALL, TOOL_SEARCH,
    found_tools, nearest, nothing_found,
};
use cocode_wire::encode::push_member;
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use http::HeaderMap;
use serde_json::value::RawValue;

use super::calling::{By, NotCalled};
use super::snapshot::Snapshot;
use super::{Merged, lock};
use crate::deeds::{Watched, not_there};
use crate::reply::Reply;
use crate::request::Request;
use crate::results::completed;
use crate::searching::{Announced, Choice};

/// Bytes of a name nobody has that are said again.
const MAX_SHOWN_BYTES: usize = 64;
/// Servers that are named to somebody who asked for another.
const MAX_NAMED_SERVERS: usize = 50;
/// What is passed on of the definition of a tool, besides its name.
const PASSED_ON: [&str; 4] = ["title", "description", "inputSchema", "annotations"];

/// One of the tools that searching takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    Search,
    Call,
}

/// What somebody searches for.
#[derive(Debug, PartialEq, Eq)]
struct Query {
    text: String,
    limit: usize,
    server: Option<String>,
    detail: FoundDetail,
}

impl Merged {
    /// Which of our own tools a call is for. A server that has a tool of this name has the right of way,
    /// except with those who search: to them, the name was shown as ours.
    pub(super) fn own_tool(&self, shown: &str, request: &Request) -> Result<Option<Own>, RpcError> {
        let own = match shown {
            TOOL_SEARCH => Own::Search,
            TOOL_CALL => Own::Call,
            _ => return Ok(None),
        };
        let (view, snapshot) = self.current()?;
        if view.search().is_off() {
            return Ok(None);
        }
        if snapshot.tools.resolve(shown).is_none() {
            // Whoever was shown them once may call them, though it is shown all tools by now.
            return Ok(Some(own));
        }
        let is_searching = match self.audience.find(request.session) {
            Some(member) => member.is_searching(),
            None => choice_of(request)?.decide(view.search(), || snapshot.load()),
        };
        Ok(is_searching.then_some(own))
    }

    /// Serves a call of one of our own tools.
    pub(super) async fn call_own(
        &self,
        own: Own,
        mut request: Box<Request>,
    ) -> Result<Reply, RpcError> {
        let era = request.caller.era();
        match own {
            Own::Search => {
                let given = request.arguments()?;
                let watched = self.view()?.watch(&request, None, Some(TOOL_SEARCH))?;
                let reply = match Query::read(given.as_ref()) {
                    Ok(query) => self.search(&query, era).await,
                    Err(what) => failed(&what, era),
                };
                Watched::end(watched, reply.as_ref()).await;
                reply
            }
            Own::Call => {
                let name = match unwrap_call(&mut request)? {
                    Ok(name) => name,
                    Err(what) => {
                        let error = RpcError::new(code::INVALID_PARAMS, what.as_str());
                        let view = self.view()?;
                        view.turn_away(&request, None, TOOL_CALL, not_there(&error))?;
                        return failed(&what, era);
                    }
                };
                match self.call_named(&name, request, By::ToolCall).await {
                    Ok(reply) => Ok(reply),
                    Err(NotCalled::Unknown(what)) => {
                        let stop = if what.ends_with('?') { "" } else { "." };
                        let what = format!(
                            "{what}{stop} `{TOOL_SEARCH}` finds tools by what they are for, and names them."
                        );
                        failed(&what, era)
                    }
                    Err(NotCalled::Error(error)) => Err(error),
                }
            }
        }
    }

    /// The tools that fit best. Whoever searches first has everything read, which takes its time, and
    /// nobody else is to wait for that.
    async fn hits(&self, snapshot: &Arc<Snapshot>, query: &Query) -> Result<Vec<Hit>, RpcError> {
        let (index, snapshot) = (Arc::clone(&self.index), Arc::clone(snapshot));
        let (text, server, limit) = (query.text.clone(), query.server.clone(), query.limit);
        let searching = tokio::task::spawn_blocking(move || {
            lock(&index).search(&snapshot, &text, server.as_deref(), limit)
        });
        let failed = |error: tokio::task::JoinError| {
            RpcError::new(code::INTERNAL_ERROR, format!("the search failed: {error}"))
        };
        searching.await.map_err(failed)
    }

    async fn search(&self, query: &Query, era: Era) -> Result<Reply, RpcError> {
        // Lists that are remembered are known: this waits for no server that was ever there.
        self.wait_for(ListKind::Tools).await?;
        let (view, snapshot) = self.current()?;
        let server = query.server.as_deref();
        if let Some(server) = server
            && !snapshot.has_shown(server)
        {
            return failed(&unknown_server(server, &snapshot), era);
        }
        let hits = self.hits(&snapshot, query).await?;
        let found = if hits.is_empty() {
            let servers = snapshot.servers().map(|(spec, _)| spec.name.as_str());
            let servers = servers.filter(|name| snapshot.has_shown(name));
            nothing_found(&query.text, servers)
        } else {
            // It is sent twice: as text, and as structured content.
            let max_tokens = view.output().cap_tokens / 2;
            told(&snapshot, &hits, query.detail, max_tokens)
        };
        structured(&found, era)
    }
}

/// What is known of a request that belongs to no session.
pub(super) fn choice_of(request: &Request) -> Result<Choice, RpcError> {
    announced_by(request).map(Choice::open)
}

/// What is known of the model that a request is made for.
fn announced_by(request: &Request) -> Result<Announced, RpcError> {
    let said = match request.said.tool_search.as_ref() {
        Some(said) => {
            let value: &RawValue = said.decode().map_err(|error| invalid(&error))?;
            Announced::in_value(value)?
        }
        None => Announced::default(),
    };
    let can = Announced::in_capabilities(request.caller.behalf.capabilities.as_ref())?;
    Ok(said.or(can).or(request.from.announced()))
}

fn invalid(error: &serde_json::Error) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, error.to_string())
}

/// The definitions of what was found.
fn told(snapshot: &Snapshot, hits: &[Hit], detail: FoundDetail, max_tokens: u64) -> String {
    let found = hits.iter().filter_map(|hit| {
        let name = snapshot.shown_name(&hit.server, &hit.tool)?;
        let (_, listed) = snapshot.offered(&hit.server)?;
        let tool = listed.tool(&(&*hit.tool).into())?;
        let members: Members<'_> = tool.tool.raw.decode().ok()?;
        let passed_on = PASSED_ON.into_iter();
        let passed_on = passed_on.filter_map(|key| Some((key, members.get(key)?.get())));
        Some((name, hit, tool, passed_on.collect::<Vec<_>>()))
    });
    let found: Vec<_> = found.collect();
    let texts = found.iter().map(|(name, hit, tool, members)| FoundText {
        name,
        server: &hit.server,
        about: tool.tool.description.as_deref(),
        members,
    });
    found_tools(&texts.collect::<Vec<_>>(), detail, max_tokens)
}

fn unknown_server(server: &str, snapshot: &Snapshot) -> String {
    let names = || snapshot.servers().map(|(spec, _)| spec.name.as_str());
    let shown = |name: &&str| snapshot.has_shown(name);
    let near = nearest(server, names().filter(shown));
    let (server, _) = server.split_at(server.floor_char_boundary(MAX_SHOWN_BYTES));
    if near.is_empty() {
        let all: Vec<_> = names().filter(shown).take(MAX_NAMED_SERVERS).collect();
        let more = if all.len() == MAX_NAMED_SERVERS {
            ", …"
        } else {
            ""
        };
        return format!(
            "There is no server `{server}` to search. There are: {}{more}.",
            all.join(", ")
        );
    }
    let near: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "There is no server `{server}` to search. Did you mean {}?",
        near.join(" or ")
    )
}

impl Query {
    /// Reads the arguments of `tool_search`; what is wrong with them is said to the model.
    fn read(arguments: Option<&RawJson>) -> Result<Self, String> {
        let members = arguments.map(RawJson::decode::<Members<'_>>).transpose();
        let members = members.map_err(|_no_object| "The arguments are no object.".to_owned())?;
        let mut query = Self {
            text: String::new(),
            limit: DEFAULT_FOUND,
            server: None,
            detail: FoundDetail::Full,
        };
        for (key, value) in members.unwrap_or_default().0 {
            let value = value.get();
            match &*key {
                "query" => query.text = text(&key, value)?,
                "server" | "limit" if value == "null" => {}
                "server" => query.server = Some(text(&key, value)?),
                "limit" => {
                    // Some write whole numbers as `5.0`, and schemas allow it.
                    let limit = value.strip_suffix(".0").unwrap_or(value).parse().ok();
                    let limit = limit.filter(|limit| (1..=MAX_FOUND).contains(limit));
                    query.limit = limit
                        .ok_or_else(|| format!("`limit` is a number from 1 to {MAX_FOUND}."))?;
                }
                "detail" => {
                    query.detail = match value {
                        "\"full\"" | "null" => FoundDetail::Full,
                        "\"names\"" => FoundDetail::Names,
                        _ => return Err("`detail` is \"full\" or \"names\".".to_owned()),
                    }
                }
                other => {
                    return Err(format!(
                        "`{other}` is no argument of `{TOOL_SEARCH}`: it takes query, limit, server \
                         and detail."
                    ));
                }
            }
        }
        if query.text.trim().is_empty() {
            return Err("`query` says in a few words what the tool should do.".to_owned());
        }
        Ok(query)
    }
}

fn text(key: &str, value: &str) -> Result<String, String> {
    serde_json::from_str(value).map_err(|_no_text| format!("`{key}` is a text."))
}

/// The name of a tool that is called, or what is wrong with the call, for the model.
type Unwrapped = Result<String, String>;

/// Makes a call of `tool_call` what it would be if its tool were called by name.
///
/// Everything but name and arguments stays as it is, so that whoever comes back with answers, comes back
/// to the same call. The headers that a client mirrors arguments in are those of `tool_call`, which has
/// none.
fn unwrap_call(request: &mut Request) -> Result<Unwrapped, RpcError> {
    let Some(given) = request.arguments()? else {
        return Ok(Err(format!("`{TOOL_CALL}` needs the `name` of a tool.")));
    };
    let Ok(members) = given.decode::<Members<'_>>() else {
        return Ok(Err("The arguments are no object.".to_owned()));
    };
    let (mut name, mut inner) = (None, None);
    for (key, value) in &members.0 {
        let place = match &**key {
            "name" => &mut name,
            "arguments" => &mut inner,
            other => {
                return Ok(Err(format!(
                    "`{other}` is no argument of `{TOOL_CALL}`: it takes the name of a tool, and the \
                     arguments of that tool as one object in `arguments`."
                )));
            }
        };
        if place.replace(*value).is_some() {
            return Ok(Err(format!("`{key}` is there twice.")));
        }
    }
    let Some(name) = name.and_then(|name| serde_json::from_str::<String>(name.get()).ok()) else {
        return Ok(Err(format!("`{TOOL_CALL}` needs the `name` of a tool.")));
    };
    let inner = inner.filter(|inner| inner.get() != "null");
    if inner.is_some_and(|inner| !inner.get().starts_with('{')) {
        let what = "`arguments` is one object with the arguments of the tool, and no text.";
        return Ok(Err(what.to_owned()));
    }
    let outer = request.params.as_ref();
    let outer = outer.map(RawJson::decode::<Members<'_>>).transpose();
    let outer = outer.map_err(|error| invalid(&error))?.unwrap_or_default();
    let mut params = b"{".to_vec();
    let shown = RawJson::of(&name).map_err(|error| invalid(&error))?;
    push_member(&mut params, "name", shown.as_str());
    if let Some(inner) = inner {
        params.push(b',');
        push_member(&mut params, "arguments", inner.get());
    }
    let others = outer.0.iter();
    for (key, value) in others.filter(|(key, _)| !matches!(&**key, "name" | "arguments")) {
        params.push(b',');
        push_member(&mut params, key, value.get());
    }
    params.push(b'}');
    let params = RawJson::parse(params).map_err(|error| invalid(&error))?;
    drop(outer);
    request.said.name = Some(name.clone());
    request.params = Some(params);
    request.headers = HeaderMap::new();
    Ok(Ok(name))
}

/// A result with structured content, and the same as text.
fn structured(json: &str, era: Era) -> Result<Reply, RpcError> {
    let as_text = RawJson::of(json).map_err(|error| invalid(&error))?;
    let text =
        format!(r#"{{"content":[{{"type":"text","text":{as_text}}}],"structuredContent":{json}}}"#);
    result(text, era)
}

/// A result that says what went wrong, for the model.
fn failed(what: &str, era: Era) -> Result<Reply, RpcError> {
    let what = RawJson::of(what).map_err(|error| invalid(&error))?;
    let text = format!(r#"{{"content":[{{"type":"text","text":{what}}}],"isError":true}}"#);
    result(text, era)
}

fn result(text: String, era: Era) -> Result<Reply, RpcError> {
    let internal =
        |error: serde_json::Error| RpcError::new(code::INTERNAL_ERROR, error.to_string());
    let result = RawJson::parse(text).map_err(internal)?;
    Ok(match era {
        Era::Legacy => Reply::Result(result),
        Era::Modern => completed("tools/call", result),
    })
}

#[cfg(test)]
mod tests {
    use cocode_core::FoundDetail;
    use cocode_wire::RawJson;

    use super::Query;

    fn read(json: &str) -> Result<Query, String> {
        Query::read(Some(&RawJson::parse(json.to_owned()).unwrap()))
    }

    #[test]
    fn a_query_is_read_or_said_to_be_wrong() {
        let query = read(r#"{"query":"read","limit":7,"server":"files","detail":"names"}"#);
        let expected = Query {
            text: "read".to_owned(),
            limit: 7,
            server: Some("files".to_owned()),
            detail: FoundDetail::Names,
        };
        assert_eq!(query.as_ref(), Ok(&expected));
        let query = read(r#"{"query":"read","limit":null,"server":null}"#).unwrap();
        assert_eq!((query.limit, query.server), (5, None));
        for (bad, expected) in [
            ("{}", "`query`"),
            (r#"{"query":" "}"#, "`query`"),
            (r#"{"query":7}"#, "`query` is a text"),
            (r#"{"query":"x","limit":0}"#, "from 1 to 20"),
            (r#"{"query":"x","limit":21}"#, "from 1 to 20"),
            (r#"{"query":"x","limit":"5"}"#, "from 1 to 20"),
            (r#"{"query":"x","detail":"all"}"#, "\"names\""),
            (r#"{"query":"x","q":1}"#, "`q` is no argument"),
            ("[]", "no object"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(expected), "{bad}: {error}");
        }
        assert!(Query::read(None).is_err());
    }
}
