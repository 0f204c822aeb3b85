//! Results and errors, as the era of a client wants them.

use cocode_core::Era;
use cocode_wire::members::{Members, never_mentions};
use cocode_wire::{Frame, RawJson, RpcError, code};

use crate::reply::Reply;

/// Methods whose results say how long they hold.
fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}

/// What a server of the other era answered, for a client of this one.
pub(crate) fn adapted(method: &str, frame: Frame, from: Era, to: Era) -> Reply {
    if from == to {
        return Reply::Frame(frame);
    }
    match (frame.result(), frame.error()) {
        (Some(result), _) if to == Era::Modern => completed(method, result),
        (None, Some(error)) => Reply::Error(adapted_error(method, error, to)),
        _ => Reply::Frame(frame),
    }
}

/// A result with what every result of the stateless era has to say. A server that does not know
/// how long its lists hold has promised nothing.
pub(crate) fn completed(method: &str, result: RawJson) -> Reply {
    let has = |name: &str| {
        if never_mentions(&result, name) {
            return false;
        }
        let members = result.decode::<Members<'_>>().unwrap_or_default();
        members.get(name).is_some()
    };
    let mut added = String::new();
    if !has("resultType") {
        added.push_str(r#""resultType":"complete","#);
    }
    if is_cacheable(method) {
        if !has("ttlMs") {
            added.push_str(r#""ttlMs":0,"#);
        }
        if !has("cacheScope") {
            added.push_str(r#""cacheScope":"private","#);
        }
    }
    let text = result.as_str().trim();
    let Some(inside) = text.strip_prefix('{').filter(|_| !added.is_empty()) else {
        return Reply::Result(result);
    };
    if inside.trim_start().starts_with('}') {
        added.pop();
    }
    match RawJson::parse(format!("{{{added}{inside}")) {
        Ok(result) => Reply::Result(result),
        Err(_not_json) => Reply::Result(result),
    }
}

fn adapted_error(method: &str, error: RpcError, to: Era) -> RpcError {
    let names_uri = |error: &RpcError| {
        let data = error.data.as_ref();
        let members = data.and_then(|data| data.decode::<Members<'_>>().ok());
        members.is_some_and(|members| members.get("uri").is_some())
    };
    match (to, error.code) {
        (Era::Modern, code::RESOURCE_NOT_FOUND) => RpcError {
            code: code::INVALID_PARAMS,
            ..error
        },
        (Era::Legacy, code::INVALID_PARAMS) if method == "resources/read" && names_uri(&error) => {
            RpcError {
                code: code::RESOURCE_NOT_FOUND,
                ..error
            }
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use cocode_wire::RawJson;

    use super::completed;
    use crate::reply::Reply;

    #[track_caller]
    fn check(method: &str, result: &str, expected: &str) {
        let result = RawJson::parse(result.to_owned()).unwrap();
        let Reply::Result(completed) = completed(method, result) else {
            panic!("a result");
        };
        assert_eq!(completed.as_str(), expected);
    }

    #[test]
    fn what_is_missing_is_added_and_the_rest_stays_as_it_is() {
        check("tools/call", "{}", r#"{"resultType":"complete"}"#);
        check(
            "tools/call",
            r#"{"content":[],"n":1e400}"#,
            r#"{"resultType":"complete","content":[],"n":1e400}"#,
        );
        check(
            "tools/list",
            r#"{ "tools":[], "ttlMs":5 }"#,
            r#"{"resultType":"complete","cacheScope":"private", "tools":[], "ttlMs":5 }"#,
        );
        let whole = r#"{"resultType":"task","taskId":"x"}"#;
        check("tools/call", whole, whole);
        check(
            "tools/call",
            r#"{"content":[{"resultType":1}]}"#,
            r#"{"resultType":"complete","content":[{"resultType":1}]}"#,
        );
    }
}
