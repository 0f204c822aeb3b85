//! Prompts, resources and completions: each at the server that has them.

use cocode_client::ListKind;
use cocode_core::{Era, ServerName};
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Merged;
use super::pages::with_text;
use crate::deeds::{Watched, not_there};
use crate::passing::pass;
use crate::reply::Reply;
use crate::request::Request;
use crate::results::completed;

/// What somebody wants completions for.
#[derive(Deserialize)]
struct Reference<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
}

impl Merged {
    pub(super) async fn get_prompt(&self, request: &Request) -> Result<Reply, RpcError> {
        let Some(shown) = &request.said.name else {
            return Err(self.turned_away(request, "", invalid("no prompt is named")));
        };
        let found = self.find_prompt(shown).await;
        let (server, prompt) = found.map_err(|error| self.turned_away(request, shown, error))?;
        let params = request.params.as_ref();
        let params = params.and_then(|params| with_text(params, "name", &prompt));
        let passed = self.pass_to(&server, request, params);
        self.watched(&server, &prompt, request, passed).await
    }

    pub(super) async fn read(&self, request: &Request) -> Result<Reply, RpcError> {
        let Some(shown) = &request.said.uri else {
            return Err(self.turned_away(request, "", invalid("no `uri` is named")));
        };
        let found = self.find_resource(shown, request.caller.era()).await;
        let (server, uri) = found.map_err(|error| self.turned_away(request, shown, error))?;
        let params = request.params.as_ref();
        let params = params.and_then(|params| with_text(params, "uri", &uri));
        let passed = self.pass_to(&server, request, params);
        let reply = self.watched(&server, &uri, request, passed).await?;
        if uri == *shown {
            return Ok(reply);
        }
        let known = reply
            .result()
            .and_then(|result| known_as(&result, &uri, shown));
        Ok(known.map_or(reply, Reply::Result))
    }

    pub(super) async fn complete(&self, request: &Request) -> Result<Reply, RpcError> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "ref")]
            reference: &'a RawValue,
        }
        let missing = || invalid("no `ref` says what to complete");
        let params = request.params.as_ref().ok_or_else(missing)?;
        let parts: Params<'_> = params.decode().map_err(|_other| missing())?;
        let reference: Reference<'_> =
            serde_json::from_str(parts.reference.get()).map_err(|_other| missing())?;
        let text = |value: &RawValue| serde_json::from_str::<String>(value.get()).ok();
        let (place, server, own) = match reference {
            Reference {
                name: Some(name), ..
            } => {
                let shown = text(name).ok_or_else(missing)?;
                let found = self.find_prompt(&shown).await;
                let (server, own) =
                    found.map_err(|error| self.turned_away(request, &shown, error))?;
                (name, server, own)
            }
            Reference { uri: Some(uri), .. } => {
                let shown = text(uri).ok_or_else(missing)?;
                let found = self.find_template(&shown, request.caller.era()).await;
                let (server, own) =
                    found.map_err(|error| self.turned_away(request, &shown, error))?;
                (uri, server, own)
            }
            Reference { .. } => return Err(missing()),
        };
        let completed = async {
            let (_, snapshot) = self.current()?;
            let can = snapshot.capabilities(&server);
            if can.is_some_and(|can| !can.completions) {
                return Ok(nothing_to_complete(request.caller.era()));
            }
            let own = RawJson::of(&own).map_err(|_no_text| missing())?;
            let params = params.with_part(place, &own);
            self.pass_to(&server, request, Some(params)).await
        };
        self.watched(&server, &own, request, completed).await
    }

    /// Tells of a request for something that nobody has, and gives the answer to it.
    fn turned_away(&self, request: &Request, shown: &str, error: RpcError) -> RpcError {
        let view = self.view();
        let told = view.and_then(|view| view.turn_away(request, None, shown, not_there(&error)));
        told.err().unwrap_or(error)
    }

    /// Has a request made under the eyes of whoever watches. `name` is what it is about, as the server
    /// knows it.
    async fn watched(
        &self,
        server: &ServerName,
        name: &str,
        request: &Request,
        work: impl Future<Output = Result<Reply, RpcError>>,
    ) -> Result<Reply, RpcError> {
        let watched = self.view()?.watch(request, Some(server), Some(name))?;
        let reply = work.await;
        Watched::end(watched, reply.as_ref()).await;
        reply
    }

    /// Carries a request to a server, with these parameters.
    async fn pass_to(
        &self,
        server: &ServerName,
        request: &Request,
        params: Option<RawJson>,
    ) -> Result<Reply, RpcError> {
        let view = self.view()?;
        let gone = || RpcError::new(code::INTERNAL_ERROR, "the server is not served any more");
        let entry = view.entry(server).ok_or_else(gone)?;
        let instance = self.instance(&entry, request).await?;
        Ok(pass(instance, request, None, params, view.parking()).await)
    }

    async fn find_prompt(&self, shown: &str) -> Result<(ServerName, String), RpcError> {
        let find = || {
            let (_, snapshot) = self.current()?;
            let found = snapshot.prompts.resolve(shown);
            Ok(found.map(|(server, prompt)| (server.clone(), prompt.as_str().to_owned())))
        };
        if let Some(found) = find()? {
            return Ok(found);
        }
        self.wait_for(ListKind::Prompts).await?;
        find()?.ok_or_else(|| invalid(&format!("Unknown prompt: {shown}")))
    }

    /// The server of a resource, and what that server knows it by.
    pub(super) async fn find_resource(
        &self,
        shown: &str,
        era: Era,
    ) -> Result<(ServerName, String), RpcError> {
        let find = || {
            let (view, snapshot) = self.current()?;
            let is_served = |server: &ServerName| view.entry(server).is_some();
            Ok(snapshot.resources.find(shown, is_served))
        };
        self.find_somewhere(shown, era, find).await
    }

    async fn find_template(&self, shown: &str, era: Era) -> Result<(ServerName, String), RpcError> {
        let find = || {
            let (view, snapshot) = self.current()?;
            let is_served = |server: &ServerName| view.entry(server).is_some();
            Ok(snapshot.resources.find_template(shown, is_served))
        };
        self.find_somewhere(shown, era, find).await
    }

    /// Finds what has a URI, once the servers that are starting have told what they have: which of them
    /// has it does not depend on which is faster. A URI that names its server waits for no other.
    async fn find_somewhere(
        &self,
        shown: &str,
        era: Era,
        find: impl Fn() -> Result<Option<(ServerName, String)>, RpcError>,
    ) -> Result<(ServerName, String), RpcError> {
        let (_, snapshot) = self.current()?;
        let kinds = [ListKind::Resources, ListKind::ResourceTemplates];
        let is_known = kinds.iter().all(|kind| snapshot.unknown(*kind).is_empty());
        drop(snapshot);
        let is_settled = |(_, own): &(ServerName, String)| is_known || own != shown;
        if let Some(found) = find()?.filter(is_settled) {
            return Ok(found);
        }
        if !is_known {
            for kind in kinds {
                self.wait_for(kind).await?;
            }
        }
        find()?.ok_or_else(|| unknown_resource(shown, era))
    }
}

/// What was read, with the URI that the client knows in the place of the server's own.
fn known_as(result: &RawJson, uri: &str, shown: &str) -> Option<RawJson> {
    #[derive(Deserialize)]
    struct Read<'a> {
        #[serde(borrow)]
        contents: Vec<&'a RawValue>,
    }
    let shown = RawJson::of(shown).ok()?;
    let read: Read<'_> = result.decode().ok()?;
    let parts = read.contents.into_iter().filter_map(|content| {
        let own = Members::of(content)?.get("uri")?;
        let text: String = serde_json::from_str(own.get()).ok()?;
        (text == uri).then_some((own, &shown))
    });
    Some(result.with_parts(parts))
}

fn nothing_to_complete(era: Era) -> Reply {
    let none = RawJson::parse(r#"{"completion":{"values":[]}}"#);
    match none {
        Ok(none) if era == Era::Modern => completed("completion/complete", none),
        Ok(none) => Reply::Result(none),
        Err(error) => RpcError::new(code::INTERNAL_ERROR, error.to_string()).into(),
    }
}

fn unknown_resource(uri: &str, era: Era) -> RpcError {
    RpcError {
        code: match era {
            Era::Legacy => code::RESOURCE_NOT_FOUND,
            Era::Modern => code::INVALID_PARAMS,
        },
        message: format!("Unknown resource: {uri}"),
        data: RawJson::of(&serde_json::json!({ "uri": uri })).ok(),
    }
}

fn invalid(what: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, what)
}
