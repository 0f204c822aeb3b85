//! The scripted model as a program.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[test]
fn the_program_says_where_it_is_and_logs_what_it_hears() {
    let directory = tempfile::tempdir().unwrap();
    let (script, log) = (
        directory.path().join("script.json"),
        directory.path().join("log"),
    );
    let turn = json!({"parts": [{"text": ["hel", "lo"]}]});
    fs::write(&script, json!({ "forever": turn }).to_string()).unwrap();
    let mut child = Command::new(cocode_testkit::model_program())
        .args(["--format", "chat", "--script"])
        .arg(&script)
        .arg("--log")
        .arg(&log)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let base_url = lines.next().unwrap().unwrap();
    let address = base_url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/v1")
        .unwrap();

    let body =
        json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]});
    let body = body.to_string();
    let mut connection = TcpStream::connect(address).unwrap();
    write!(
        connection,
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while !answer.ends_with(b"0\r\n\r\n") {
        let n_read = connection.read(&mut buffer).unwrap();
        assert!(n_read > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&buffer[..n_read]);
    }
    assert!(String::from_utf8_lossy(&answer).contains("data: [DONE]"));

    let text = fs::read_to_string(&log).unwrap();
    let heard: Value = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!(
        (&heard["path"], &heard["body"]["model"]),
        (&json!("/v1/chat/completions"), &json!("m"))
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_program_says_what_is_wrong_with_its_arguments() {
    let output = Command::new(cocode_testkit::model_program())
        .args(["--format", "smoke"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("unknown variant `smoke`") && errors.contains("usage:"),
        "{errors}"
    );
}
