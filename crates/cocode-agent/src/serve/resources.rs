//! Conversations as resources: each a document that says what happened in it.

use cocode_core::Era;
use cocode_wire::{RawJson, RpcError, chain, code};
use serde_json::{Value, json};

use super::answers::{FIXED_TTL_MS, cacheable};
use super::talk::Talk;
use crate::markdown::render_markdown;
use crate::store::{ConversationId, StoreError, Summary, Wanted};
use crate::utc::utc;

/// What the addresses of conversations begin with.
const SCHEME: &str = "cocode://conversations/";
const MIME: &str = "text/markdown";

/// Conversations of one page.
const PAGE: usize = 50;
/// Pages are not turned beyond so many conversations.
const MAX_OFFSET: usize = 1_000_000;
/// How long clients may rely on what changes with every turn.
const CHANGING_TTL_MS: u64 = 0;

impl Talk {
    /// The result of `resources/list`.
    pub(super) async fn resources(
        &self,
        cursor: Option<&Value>,
        era: Era,
    ) -> Result<Value, RpcError> {
        let offset = offset(cursor)?;
        let options = &self.shared.options;
        let wanted = Wanted {
            owner: Some(options.owner.clone()),
            // One more says whether there is another page.
            limit: PAGE + 1,
            offset,
        };
        let store = &options.agent.options().store;
        let found = store.list(&wanted).await.map_err(|error| broken(&error))?;
        let resources: Vec<Value> = found.iter().take(PAGE).map(described).collect();
        let mut result = json!({ "resources": resources });
        if found.len() > PAGE {
            result["nextCursor"] = (offset + PAGE).to_string().into();
        }
        Ok(cacheable(result, era, CHANGING_TTL_MS))
    }

    /// The result of `resources/read`.
    pub(super) async fn resource(&self, uri: Option<String>, era: Era) -> Result<Value, RpcError> {
        let Some(uri) = uri else {
            return Err(RpcError::new(code::INVALID_PARAMS, "`uri` is missing"));
        };
        let id = uri.strip_prefix(SCHEME);
        let id: Option<ConversationId> = id.and_then(|id| id.parse().ok());
        let Some(id) = id else {
            return Err(unknown(&uri, era));
        };
        let options = &self.shared.options;
        let store = &options.agent.options().store;
        // A conversation of another owner is answered like one that does not exist.
        let stored = match store.is_owned_by(&id, &options.owner).await {
            Ok(true) => store.load(&id).await,
            Ok(false) => return Err(unknown(&uri, era)),
            Err(error) => Err(error),
        };
        let stored = match stored {
            Ok(stored) => stored,
            Err(StoreError::Unknown(_)) => return Err(unknown(&uri, era)),
            Err(error) => return Err(broken(&error)),
        };
        let text = render_markdown(&stored);
        let contents = json!([{ "uri": uri, "mimeType": MIME, "text": text }]);
        let result = json!({ "contents": contents });
        Ok(cacheable(result, era, CHANGING_TTL_MS))
    }
}

/// The result of `resources/templates/list`.
pub(super) fn templates(era: Era) -> Value {
    let template = json!({
        "uriTemplate": format!("{SCHEME}{{session_id}}"),
        "name": "conversation",
        "title": "A conversation with the agent",
        "description": "What happened in a conversation, by the session_id that cocode returned.",
        "mimeType": MIME,
    });
    let result = json!({ "resourceTemplates": [template] });
    cacheable(result, era, FIXED_TTL_MS)
}

fn described(summary: &Summary) -> Value {
    let id = &summary.id;
    let title = match summary.title.trim() {
        "" => id.as_str(),
        title => title,
    };
    let used = utc(summary.used);
    let turns = match summary.turns {
        1 => "1 turn".to_owned(),
        turns => format!("{turns} turns"),
    };
    let state = match (summary.is_closed, summary.is_held) {
        (true, _) => ", finished",
        (false, true) => ", a turn is going on",
        (false, false) => "",
    };
    let place = summary.cwd.display();
    json!({
        "uri": format!("{SCHEME}{id}"),
        "name": title,
        "title": title,
        "description": format!("{turns}{state}, last used {used}, in {place}"),
        "mimeType": MIME,
        "annotations": { "lastModified": used },
    })
}

fn offset(cursor: Option<&Value>) -> Result<usize, RpcError> {
    let given = match cursor {
        None | Some(Value::Null) => return Ok(0),
        Some(given) => given.as_str().and_then(|text| text.parse().ok()),
    };
    given.filter(|offset| *offset <= MAX_OFFSET).ok_or_else(|| {
        let what = "the `cursor` is none that was given out";
        RpcError::new(code::INVALID_PARAMS, what)
    })
}

fn unknown(uri: &str, era: Era) -> RpcError {
    let shown: String = uri.chars().take(200).collect();
    RpcError {
        code: match era {
            Era::Legacy => code::RESOURCE_NOT_FOUND,
            Era::Modern => code::INVALID_PARAMS,
        },
        message: format!("there is no resource `{shown}`"),
        data: RawJson::of(&json!({ "uri": shown })).ok(),
    }
}

fn broken(error: &StoreError) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, chain(error))
}
