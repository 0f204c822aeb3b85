//! What to type or paste so that other tools use the gateway.

use cocode_access::Token;
use serde_json::json;

use crate::printer::{Paint, Style};

/// One tool, and how it learns of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// The word for it in our output for scripts.
    pub(crate) id: &'static str,
    /// What it is called.
    pub(crate) title: &'static str,
    /// The file to paste into; nothing if it is a command to type.
    pub(crate) file: Option<&'static str>,
    /// The line.
    pub(crate) line: String,
}

impl Client {
    /// A line for people.
    pub(crate) fn told(&self, paint: Paint) -> String {
        let title = paint.paint(Style::Dim, &format!("{:<13}", self.title));
        let file = self.file.map(|file| format!("{file}: "));
        format!("{title}{}{}", file.unwrap_or_default(), self.line)
    }
}

/// The name of the gateway in the configuration of other tools.
pub(crate) const NAME: &str = "cocode";

/// The variable that the lines take the token from.
const TOKEN: &str = "COCODE_TOKEN";

/// Whether clients have to show a token.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry<'a> {
    Open,
    ByToken,
    /// A token that was created at this start.
    NewToken(&'a Token),
}

/// The lines for the tools that most people use.
pub(crate) fn lines(url: &str, entry: Entry<'_>) -> [Client; 4] {
    // Shells take brackets and question marks for a pattern, and more for other things.
    let word = if url.contains(['[', '?', '&', ';', '*', '~', '$']) {
        format!("'{url}'")
    } else {
        url.to_owned()
    };
    let mut cursor = json!({ "url": url });
    let mut vscode = json!({ "name": NAME, "type": "http", "url": url });
    let (mut claude, mut codex, mut export) = (String::new(), String::new(), String::new());
    // The token as a shell and as a file name it.
    let token = match entry {
        Entry::Open => None,
        Entry::ByToken => Some((format!("${TOKEN}"), format!("${{env:{TOKEN}}}"))),
        Entry::NewToken(token) => {
            // Codex takes tokens from variables only.
            export = format!("export {TOKEN}={}; ", token.expose());
            Some((token.expose().to_owned(), token.expose().to_owned()))
        }
    };
    if let Some((in_shell, in_file)) = token {
        claude = format!(" --header \"Authorization: Bearer {in_shell}\"");
        codex = format!(" --bearer-token-env-var {TOKEN}");
        let headers = json!({ "Authorization": format!("Bearer {in_file}") });
        cursor["headers"] = headers.clone();
        vscode["headers"] = headers;
    }
    let cursor = json!({ "mcpServers": { NAME: cursor } });
    [
        Client {
            id: "claude-code",
            title: "Claude Code",
            file: None,
            line: format!("claude mcp add --transport http {NAME} {word}{claude}"),
        },
        Client {
            id: "codex",
            title: "Codex",
            file: None,
            line: format!("{export}codex mcp add {NAME} --url {word}{codex}"),
        },
        Client {
            id: "cursor",
            title: "Cursor",
            file: Some("~/.cursor/mcp.json"),
            line: cursor.to_string(),
        },
        Client {
            id: "vscode",
            title: "VS Code",
            file: None,
            line: format!("code --add-mcp '{vscode}'"),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::{Entry, lines};

    #[test]
    fn an_address_that_shells_would_change_is_quoted() {
        for url in [
            "http://[::1]:7777/mcp",
            "http://127.0.0.1:7777/mcp?context_window=200000&tool_search=auto",
        ] {
            let [claude, codex, cursor, _] = lines(url, Entry::Open);
            for command in [claude, codex] {
                let quoted = format!("'{url}'");
                assert!(command.line.ends_with(&quoted), "{}", command.line);
            }
            assert!(cursor.line.contains(&format!("\"{url}\"")));
        }
        let [claude, ..] = lines("http://127.0.0.1:7777/mcp", Entry::Open);
        assert!(!claude.line.contains('\''), "{}", claude.line);
    }

    #[test]
    fn where_a_token_is_needed_the_lines_have_one() {
        for client in lines("http://127.0.0.1:7777/mcp", Entry::ByToken) {
            assert!(client.line.contains("COCODE_TOKEN"), "{}", client.line);
        }
        let token = cocode_access::Token::generate().unwrap();
        for client in lines("http://127.0.0.1:7777/mcp", Entry::NewToken(&token)) {
            assert!(client.line.contains(token.expose()), "{}", client.id);
        }
    }
}
