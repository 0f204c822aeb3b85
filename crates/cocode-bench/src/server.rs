//! The server that every client talks to: blocking, single-threaded, and everything it sends is
//! built beforehand, so that it is never what a benchmark measures.
//!
//! It reads requests by searching for the few words it knows, which is only right for clients
//! that mean well.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;

use memchr::{memchr_iter, memmem};

/// One read takes many requests when many are in flight.
const READ_BYTES: usize = 256 * 1024;

/// Answers up to this size are gathered into one write; a larger one is written where it lies.
const GATHERED_BYTES: usize = 64 * 1024;

const INITIALIZED: &[u8] = br#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}}"#;
const EMPTY: &[u8] = br#","result":{}}"#;
const UNKNOWN: &[u8] = br#","error":{"code":-32601,"message":"no such method"}}"#;

struct Server {
    output: File,
    gathered: Vec<u8>,
    /// The answer to `tools/list`, from behind its id.
    tools: Vec<u8>,
    /// Answers to `tools/call`, from behind their ids, by size and by whether they need escapes.
    echoes: HashMap<(usize, bool), Vec<u8>>,
}

/// Answers until the input ends. `tools` is what [`tool_list`] or [`search_tool`] gives.
pub(crate) fn serve(tools: Vec<u8>) -> io::Result<()> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut server = Server {
        output: File::from(io::stdout().as_fd().try_clone_to_owned()?),
        gathered: Vec::with_capacity(2 * GATHERED_BYTES),
        tools,
        echoes: HashMap::new(),
    };
    let mut buffer = vec![0; READ_BYTES];
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
        let read = input.read(&mut buffer[filled..])?;
        if read == 0 {
            return Ok(());
        }
        let fresh = filled;
        filled += read;
        let mut begin = 0;
        for offset in memchr_iter(b'\n', &buffer[fresh..filled]) {
            let end = fresh + offset;
            server.answer(&buffer[begin..end])?;
            begin = end + 1;
        }
        server.flush()?;
        buffer.copy_within(begin..filled, 0);
        filled -= begin;
    }
}

impl Server {
    fn answer(&mut self, line: &[u8]) -> io::Result<()> {
        // A message without an id is a notification.
        let Some(id) = number_after(line, b"\"id\":") else {
            return Ok(());
        };
        self.gathered
            .extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        self.gathered.extend_from_slice(id);
        let method = memmem::find(line, b"\"method\":\"").map_or(line, |at| &line[at + 10..]);
        let rest: &[u8] = if method.starts_with(b"tools/call\"") {
            let size = number_after(line, b"\"size\":").unwrap_or(b"0");
            let size = std::str::from_utf8(size)
                .ok()
                .and_then(|size| size.parse().ok());
            let key = (
                size.unwrap_or(0),
                memmem::find(line, b"\"escapes\":true").is_some(),
            );
            self.echoes.entry(key).or_insert_with(|| echo(key.0, key.1))
        } else if method.starts_with(b"tools/list\"") {
            &self.tools
        } else if method.starts_with(b"initialize\"") {
            INITIALIZED
        } else if method.starts_with(b"ping\"") {
            EMPTY
        } else {
            UNKNOWN
        };
        if rest.len() > GATHERED_BYTES {
            self.output.write_all(&self.gathered)?;
            self.output.write_all(rest)?;
            self.gathered.clear();
        } else {
            self.gathered.extend_from_slice(rest);
        }
        self.gathered.push(b'\n');
        if self.gathered.len() > GATHERED_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }
}

/// The digits that follow `key`, blanks before them skipped.
pub(crate) fn number_after<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = memmem::find(line, key)?;
    let rest = line[at + key.len()..].trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then(|| &rest[..digits])
}

/// An answer whose text has `size` characters, one in eight of them escaped if asked for.
pub(crate) fn echo(size: usize, escapes: bool) -> Vec<u8> {
    let pattern: &[&str] = if escapes {
        &["a", "b", "c", "\\\"", "e", "f", "g", "h"]
    } else {
        &["a", "b", "c", "d", "e", "f", "g", "h"]
    };
    let mut text: String = r#","result":{"content":[{"type":"text","text":""#.into();
    text.extend(pattern.iter().copied().cycle().take(size));
    text.push_str(r#""}],"isError":false}}"#);
    text.into_bytes()
}

/// An answer with tools of about 650 bytes each, as real servers have them.
pub(crate) fn tool_list(n_tools: usize) -> Vec<u8> {
    let mut text: String = r#","result":{"tools":["#.into();
    for index in 0..n_tools {
        let comma = if index == 0 { "" } else { "," };
        let description = "Looks up records of this kind by their key, newest first, and gives \
            back those that match the filter, each with its history. Results are cut at the limit; ask again with the \
            cursor for the rest.";
        text.push_str(&format!(
            concat!(
                r#"{}{{"name":"lookup_{:04}","title":"Look up records {:04}","description":"{}","#,
                r#""inputSchema":{{"type":"object","properties":{{"#,
                r#""key":{{"type":"string","description":"The key of the record"}},"#,
                r#""filter":{{"type":"string","description":"Words that must be in it"}},"#,
                r#""limit":{{"type":"integer","minimum":1,"maximum":100,"default":20}}}},"#,
                r#""required":["key"],"additionalProperties":false}},"#,
                r#""annotations":{{"readOnlyHint":true,"openWorldHint":false}}}}"#,
            ),
            comma, index, index, description
        ));
    }
    text.push_str("]}}");
    text.into_bytes()
}

/// An answer with one tool whose schema says as much about its arguments as those of real servers
/// do. It answers as every tool here, by `size`.
pub(crate) fn search_tool() -> Vec<u8> {
    concat!(
        r#","result":{"tools":[{"name":"search_issues","title":"Search issues","#,
        r#""description":"Finds issues by words, labels and time, newest first.","#,
        r#""inputSchema":{"type":"object","properties":{"#,
        r#""query":{"type":"string","minLength":1,"maxLength":256,"description":"Words to find"},"#,
        r#""state":{"type":"string","enum":["open","closed","all"],"default":"open"},"#,
        r#""labels":{"type":"array","items":{"type":"string","minLength":1},"maxItems":20},"#,
        r#""range":{"type":"object","properties":{"#,
        r#""from":{"type":"string","pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},"#,
        r#""to":{"type":"string","pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}},"#,
        r#""required":["from"],"additionalProperties":false},"#,
        r#""limit":{"type":"integer","minimum":1,"maximum":100,"default":20},"#,
        r#""size":{"type":"integer","minimum":0}},"#,
        r#""required":["query","size"],"additionalProperties":false},"#,
        r#""annotations":{"readOnlyHint":true,"openWorldHint":false}}]}}"#,
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::{echo, number_after, search_tool, tool_list};

    fn result(tail: &[u8]) -> serde_json::Value {
        let whole = [br#"{"id":1"#, tail].concat();
        serde_json::from_slice::<serde_json::Value>(&whole).unwrap()["result"].take()
    }

    #[test]
    fn an_echo_has_the_size_asked_for_with_and_without_escapes() {
        for escapes in [false, true] {
            let result = result(&echo(1000, escapes));
            let text = result["content"][0]["text"].as_str().unwrap();
            assert_eq!((text.len(), text.contains('"')), (1000, escapes));
        }
    }

    #[test]
    fn a_list_has_as_many_tools_as_asked_for_at_their_usual_size() {
        let list = tool_list(100);
        assert_eq!(result(&list)["tools"].as_array().unwrap().len(), 100);
        assert!((60_000..70_000).contains(&list.len()), "{}", list.len());
    }

    #[test]
    fn the_search_tool_has_a_schema() {
        let result = result(&search_tool());
        assert_eq!(result["tools"][0]["inputSchema"]["required"][1], "size");
    }

    #[test]
    fn a_number_is_found_behind_its_key() {
        assert_eq!(
            number_after(br#"{"id": 17,"x":1}"#, b"\"id\":"),
            Some(&b"17"[..])
        );
        assert_eq!(number_after(br#"{"id":"a"}"#, b"\"id\":"), None);
    }
}
