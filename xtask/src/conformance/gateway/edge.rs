//! What the gateway itself must do at its edge, and no suite checks.

use serde_json::{Value, json};

use super::http::Endpoint;
use super::legs::{LEGACY_REVISION, MODERN_REVISION};
use super::mcp::Client;
use crate::failure::Failure;

/// Says what is wrong, if anything.
type Check = fn(&Endpoint) -> Result<Option<String>, Failure>;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("a foreign Origin is forbidden", foreign_origin),
    ("a foreign Host is refused", foreign_host),
    ("bad JSON is a parse error", bad_json),
    ("an unknown session is not found", unknown_session),
    ("a session ends with DELETE", deleted_session),
    ("an unknown version is not echoed", unknown_version),
];

fn initialize(version: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": { "name": "probe", "version": "1" },
    } })
    .to_string()
}

fn ping() -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string()
}

fn expect(status: u16, allowed: &[u16]) -> Option<String> {
    (!allowed.contains(&status)).then(|| format!("gave the status {status}, not {allowed:?}"))
}

fn foreign_origin(endpoint: &Endpoint) -> Result<Option<String>, Failure> {
    let headers = [("Origin", "http://evil.example.com")];
    let answer = endpoint.send("POST", &headers, &initialize(LEGACY_REVISION))?;
    Ok(expect(answer.status, &[403]))
}

fn foreign_host(endpoint: &Endpoint) -> Result<Option<String>, Failure> {
    let headers = [("Host", "evil.example.com")];
    let answer = endpoint.send("POST", &headers, &initialize(LEGACY_REVISION))?;
    Ok(expect(answer.status, &[403, 421]))
}

fn bad_json(endpoint: &Endpoint) -> Result<Option<String>, Failure> {
    let mut answer = endpoint.send("POST", &[], "{\"jsonrpc\":")?;
    if let Some(complaint) = expect(answer.status, &[400]) {
        return Ok(Some(complaint));
    }
    let message = answer.next_message()?.unwrap_or_default();
    let is_right = message["error"]["code"] == -32700 && message["id"] == Value::Null;
    Ok((!is_right).then(|| format!("gave {message}")))
}

fn unknown_session(endpoint: &Endpoint) -> Result<Option<String>, Failure> {
    let headers = [
        ("Mcp-Session-Id", "0123456789abcdef0123456789abcdef"),
        ("MCP-Protocol-Version", LEGACY_REVISION),
    ];
    let answer = endpoint.send("POST", &headers, &ping())?;
    Ok(expect(answer.status, &[404]))
}

fn deleted_session(endpoint: &Endpoint) -> Result<Option<String>, Failure> {
    let client = Client::legacy(endpoint.clone())?;
    let headers = [
        ("Mcp-Session-Id", client.session().unwrap_or_default()),
        ("MCP-Protocol-Version", LEGACY_REVISION),
    ];
    let answer = endpoint.send("POST", &headers, &ping())?;
    if let Some(complaint) = expect(answer.status, &[200]) {
        return Ok(Some(format!("before: {complaint}")));
    }
    let answer = endpoint.send("DELETE", &headers, "")?;
    if let Some(complaint) = expect(answer.status, &[200, 202, 204]) {
        return Ok(Some(complaint));
    }
    let answer = endpoint.send("POST", &headers, &ping())?;
    Ok(expect(answer.status, &[404]).map(|complaint| format!("afterwards: {complaint}")))
}

fn unknown_version(endpoint: &Endpoint) -> Result<Option<String>, Failure> {
    let mut answer = endpoint.send("POST", &[], &initialize("1999-01-01"))?;
    let message = answer.next_message()?.unwrap_or_default();
    let version = message["result"]["protocolVersion"].as_str();
    // Those with a handshake; the newest has none.
    let known = version.is_some_and(|version| ("2024-11-05"..MODERN_REVISION).contains(&version));
    Ok((!known).then(|| format!("initialize with the version 1999-01-01 gave {message}")))
}
