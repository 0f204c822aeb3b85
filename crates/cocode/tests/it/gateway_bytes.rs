//! Results pass the gateway byte for byte, over HTTP and to clients of both eras.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use cocode_testkit::Script;
use serde_json::Value;

use crate::harness::start;
use crate::home::Home;
use crate::interrupting::signal;
use crate::status::entry;

/// Unknown members, an order of its own, numbers that no number type holds, escapes that need not be,
/// spaces, and bytes as text.
const ODD: &str = concat!(
    r#"{ "zeta":1,"content" : [ {"type":"image","data":"AAECAwT/","mimeType":"x/y" , "own":null} ],"#,
    r#""big":123456789012345678901234567890,"exact":1.10,"tiny":-0.0e-7,"a\u00e9\/":"\u0000é","alpha":{"b":1,"a":2} }"#
);
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"progressToken":7}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;

/// What is answered to a message, head and all.
fn post(address: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "POST /mcp/one HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

fn header<'a>(answer: &'a str, name: &str) -> &'a str {
    let mut lines = answer.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("`{name}` in {answer}"))
}

#[test]
fn odd_results_arrive_as_documents_and_as_events_in_both_eras() {
    for (script, is_modern) in [(Script::new(), false), (Script::modern(), true)] {
        // The second one begins an event stream.
        let script = script.on("tools/call").nth(1).result(ODD);
        let server = script.on("tools/call").progress(1, 2).result(ODD).stdio();
        let home = Home::new();
        home.user_file("mcp.toml", &entry("one", &server));
        let mut child = start(&mut home.command(["gateway", "--listen", ":0", "--json"]));
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        let first: Value = serde_json::from_str(&line).unwrap();
        let url = first["url"].as_str().unwrap_or_else(|| panic!("{line}"));
        let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp");
        let address = address.unwrap();
        let headers = if is_modern {
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n"
                .to_owned()
        } else {
            let hello = post(address, "", INITIALIZE);
            let session = header(&hello, "mcp-session-id");
            format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n")
        };
        let meta = if is_modern {
            META
        } else {
            r#""_meta":{"progressToken":7}"#
        };
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":"é","method":"tools/call","params":{{"name":"echo",{meta}}}}}"#
        );
        let expected = format!(r#"{{"jsonrpc":"2.0","id":"é","result":{ODD}}}"#);
        let document = post(address, &headers, &call);
        assert_eq!(header(&document, "content-type"), "application/json");
        assert!(
            document.ends_with(&format!("\r\n\r\n{expected}")),
            "{document}"
        );
        let events = post(address, &headers, &call);
        assert_eq!(header(&events, "content-type"), "text/event-stream");
        assert!(events.contains(&format!("data: {expected}\n")), "{events}");
        signal(&child, "-TERM");
        assert_eq!(child.wait().unwrap().code(), Some(0));
        drop(lines);
    }
}
