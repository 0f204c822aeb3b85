//! Writes JSON-RPC messages around parts that are already JSON.

use crate::raw::RawJson;
use crate::rpc_error::RpcError;

/// Room for the envelope around the parts.
const ENVELOPE_BYTES: usize = 96;

/// A request.
pub fn request(id: u64, method: &str, params: Option<&[u8]>) -> Vec<u8> {
    end(
        request_head(id, method, params.map_or(0, <[u8]>::len)),
        params,
    )
}

/// A request up to its parameters, with room for `size` bytes of them. What follows is either
/// `,"params":` with a value and a brace, or only the brace.
pub fn request_head(id: u64, method: &str, size: usize) -> Vec<u8> {
    let mut text = begin(method, size);
    text.extend_from_slice(br#","id":"#);
    push_number(&mut text, id);
    text
}

/// A notification.
pub fn notification(method: &str, params: Option<&[u8]>) -> Vec<u8> {
    end(begin(method, params.map_or(0, <[u8]>::len)), params)
}

/// A successful answer to the peer's request `id`.
pub fn response(id: &RawJson, result: &RawJson) -> Vec<u8> {
    answer(id, b"result", &[result.as_bytes()])
}

/// A successful answer whose result is in parts, which together are JSON.
pub fn response_of_parts(id: &RawJson, parts: &[&[u8]]) -> Vec<u8> {
    answer(id, b"result", parts)
}

/// A failed answer to the peer's request `id`.
pub fn error_response(id: &RawJson, error: &RpcError) -> Vec<u8> {
    let mut text = format!(r#"{{"code":{},"message":"#, error.code).into_bytes();
    push_string(&mut text, &error.message);
    if let Some(data) = &error.data {
        text.extend_from_slice(br#","data":"#);
        text.extend_from_slice(data.as_bytes());
    }
    text.push(b'}');
    answer(id, b"error", &[&text])
}

fn answer(id: &RawJson, member: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    let mut text = Vec::with_capacity(ENVELOPE_BYTES + id.as_bytes().len() + size);
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    text.extend_from_slice(id.as_bytes());
    text.extend_from_slice(br#",""#);
    text.extend_from_slice(member);
    text.extend_from_slice(br#"":"#);
    for part in parts {
        text.extend_from_slice(part);
    }
    text.push(b'}');
    text
}

fn begin(method: &str, size: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(ENVELOPE_BYTES + method.len() + size);
    text.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    push_string(&mut text, method);
    text
}

fn end(mut text: Vec<u8>, params: Option<&[u8]>) -> Vec<u8> {
    if let Some(params) = params {
        text.extend_from_slice(br#","params":"#);
        text.extend_from_slice(params);
    }
    text.push(b'}');
    text
}

/// Appends `number`.
pub fn push_number(text: &mut Vec<u8>, mut number: u64) {
    let begin = text.len();
    loop {
        // A digit fits into a byte.
        text.push(b'0' + u8::try_from(number % 10).unwrap_or_default());
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text[begin..].reverse();
}

/// Appends `"key":value`, where the value is JSON already.
pub fn push_member(text: &mut Vec<u8>, key: &str, value: &str) {
    push_string(text, key);
    text.push(b':');
    text.extend_from_slice(value.as_bytes());
}

/// Appends `value` as a JSON string.
pub fn push_string(text: &mut Vec<u8>, value: &str) {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if value.bytes().all(is_plain) {
        text.push(b'"');
        text.extend_from_slice(value.as_bytes());
        text.push(b'"');
        return;
    }
    // Serializing a string into a vector cannot fail.
    let _infallible = serde_json::to_writer(text, value);
}

#[cfg(test)]
mod tests {
    use super::{error_response, notification, push_number, push_string, request, response};
    use crate::raw::RawJson;
    use crate::rpc_error::RpcError;

    #[track_caller]
    fn check(text: Vec<u8>, expected: &str) {
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn numbers_and_strings_are_written_as_a_serializer_would() {
        for number in [0, 7, 10, 1_234_567, u64::MAX] {
            let mut text = Vec::new();
            push_number(&mut text, number);
            check(text, &number.to_string());
        }
        for value in ["", "plain", "é", "a\"b", "a\\b", "\n", "\u{1}", "\u{7f}"] {
            let mut text = Vec::new();
            push_string(&mut text, value);
            check(text, &serde_json::to_string(value).unwrap());
        }
    }

    #[test]
    fn messages_keep_their_parts_verbatim() {
        let params: &[u8] = br#"{"x": 1.10}"#;
        check(
            request(7, "a\"b", Some(params)),
            r#"{"jsonrpc":"2.0","method":"a\"b","id":7,"params":{"x": 1.10}}"#,
        );
        check(notification("n", None), r#"{"jsonrpc":"2.0","method":"n"}"#);
        let id = RawJson::parse(r#""é""#).unwrap();
        let result = RawJson::parse(r#"{"a":1e5}"#).unwrap();
        check(
            response(&id, &result),
            r#"{"jsonrpc":"2.0","id":"é","result":{"a":1e5}}"#,
        );
        let error = RpcError {
            code: -5,
            message: "no\n".into(),
            data: Some(result),
        };
        check(
            error_response(&id, &error),
            r#"{"jsonrpc":"2.0","id":"é","error":{"code":-5,"message":"no\n","data":{"a":1e5}}}"#,
        );
    }
}
