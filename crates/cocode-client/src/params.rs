//! Puts what the protocol wants to add into the parameters of a request, without decoding them.

use std::sync::LazyLock;

use cocode_wire::encode::push_member;
use memchr::memmem::Finder;

use cocode_wire::members::Members;

/// Made once: for parameters of the usual size, that costs more than the search.
static META: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"_meta\""));

/// The parameters are no JSON object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotAnObject;

/// Appends `,"params":` with `params` and the members `meta` (JSON object text without its braces)
/// in its `_meta`. Members of `meta` win over those of the same name that the caller put there.
pub(crate) fn push_params(
    text: &mut Vec<u8>,
    params: Option<&[u8]>,
    meta: &[u8],
) -> Result<(), NotAnObject> {
    if params.is_none() && meta.is_empty() {
        return Ok(());
    }
    text.extend_from_slice(b",\"params\":");
    let params = params.unwrap_or(b"{}");
    if meta.is_empty() {
        text.extend_from_slice(params);
        return Ok(());
    }
    let inner = object_inside(params)?;
    let may_have_meta = META.find(inner).is_some();
    if may_have_meta && let Some(merged) = merge(params, meta)? {
        text.extend_from_slice(&merged);
        return Ok(());
    }
    text.extend_from_slice(b"{\"_meta\":{");
    text.extend_from_slice(meta);
    text.push(b'}');
    if !inner.is_empty() {
        text.push(b',');
        text.extend_from_slice(inner);
    }
    text.push(b'}');
    Ok(())
}

/// `params` with members (JSON object text without its braces) added at the end.
pub(crate) fn with_members(params: &[u8], members: &[u8]) -> Result<Vec<u8>, NotAnObject> {
    let inner = object_inside(params)?;
    let mut text = Vec::with_capacity(inner.len() + members.len() + 4);
    text.push(b'{');
    text.extend_from_slice(inner);
    if !inner.is_empty() && !members.is_empty() {
        text.push(b',');
    }
    text.extend_from_slice(members);
    text.push(b'}');
    Ok(text)
}

/// The text between the braces of an object, without the blanks around it.
fn object_inside(object: &[u8]) -> Result<&[u8], NotAnObject> {
    let object = object.trim_ascii();
    let inside = object
        .strip_prefix(b"{")
        .and_then(|rest| rest.strip_suffix(b"}"));
    inside.map(<[u8]>::trim_ascii).ok_or(NotAnObject)
}

/// The slow way, for a caller who set a `_meta` of their own. `None` if there is none after all.
fn merge(params: &[u8], meta: &[u8]) -> Result<Option<Vec<u8>>, NotAnObject> {
    let members: Members<'_> = serde_json::from_slice(params).map_err(|_bad| NotAnObject)?;
    let Some(theirs) = members.get("_meta") else {
        return Ok(None);
    };
    let theirs = Members::of(theirs).unwrap_or_default();
    let ours = [b"{", meta, b"}"].concat();
    let ours: Members<'_> = serde_json::from_slice(&ours).map_err(|_bad| NotAnObject)?;
    let mut text = b"{\"_meta\":{".to_vec();
    text.extend_from_slice(meta);
    for (key, value) in theirs.0.iter().filter(|(key, _)| ours.get(key).is_none()) {
        text.push(b',');
        push_member(&mut text, key, value.get());
    }
    text.push(b'}');
    for (key, value) in members.0.iter().filter(|(key, _)| key != "_meta") {
        text.push(b',');
        push_member(&mut text, key, value.get());
    }
    text.push(b'}');
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::{NotAnObject, push_params, with_members};

    #[track_caller]
    fn check(params: Option<&str>, meta: &str, expected: &Result<&str, NotAnObject>) {
        let mut text = Vec::new();
        let pushed = push_params(&mut text, params.map(str::as_bytes), meta.as_bytes());
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            pushed.map(|()| text.strip_prefix(",\"params\":").unwrap_or(&text)),
            *expected
        );
    }

    #[test]
    fn meta_is_added_without_touching_the_rest() {
        check(None, "", &Ok(""));
        check(Some("[1]"), "", &Ok("[1]"));
        check(None, r#""a":1"#, &Ok(r#"{"_meta":{"a":1}}"#));
        check(Some(" { } "), r#""a":1"#, &Ok(r#"{"_meta":{"a":1}}"#));
        check(
            Some(r#"{"x": 1.10}"#),
            r#""a":1"#,
            &Ok(r#"{"_meta":{"a":1},"x": 1.10}"#),
        );
        check(Some("[1]"), r#""a":1"#, &Err(NotAnObject));
    }

    #[test]
    fn meta_of_the_caller_is_merged_and_ours_wins() {
        check(
            Some(r#"{"x":1,"_meta":{"b": 2,"a":9}}"#),
            r#""a":1"#,
            &Ok(r#"{"_meta":{"a":1,"b":2},"x":1}"#),
        );
        // A string that only looks like it.
        check(
            Some(r#"{"x":{"_meta":3}}"#),
            r#""a":1"#,
            &Ok(r#"{"_meta":{"a":1},"x":{"_meta":3}}"#),
        );
    }

    #[test]
    fn members_are_added_at_the_end() {
        let add = |params: &str, members: &str| {
            String::from_utf8(with_members(params.as_bytes(), members.as_bytes()).unwrap()).unwrap()
        };
        assert_eq!(add("{}", r#""a":1"#), r#"{"a":1}"#);
        assert_eq!(add(r#"{"x":1}"#, r#""a":1"#), r#"{"x":1,"a":1}"#);
        assert_eq!(add(r#"{"x":1}"#, ""), r#"{"x":1}"#);
    }
}
