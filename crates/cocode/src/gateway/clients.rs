//! What to type or paste so that other tools use the gateway.

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

/// The lines for the tools that most people use.
pub(crate) fn lines(url: &str) -> [Client; 4] {
    // Shells take brackets and question marks for a pattern, and more for other things.
    let word = if url.contains(['[', '?', '&', ';', '*', '~', '$']) {
        format!("'{url}'")
    } else {
        url.to_owned()
    };
    let cursor = json!({ "mcpServers": { NAME: { "url": url } } });
    let vscode = json!({ "name": NAME, "type": "http", "url": url });
    [
        Client {
            id: "claude-code",
            title: "Claude Code",
            file: None,
            line: format!("claude mcp add --transport http {NAME} {word}"),
        },
        Client {
            id: "codex",
            title: "Codex",
            file: None,
            line: format!("codex mcp add {NAME} --url {word}"),
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
    use super::lines;

    #[test]
    fn an_address_that_shells_would_change_is_quoted() {
        for url in [
            "http://[::1]:7777/mcp",
            "http://127.0.0.1:7777/mcp?context_window=200000&tool_search=auto",
        ] {
            let [claude, codex, cursor, _] = lines(url);
            for command in [claude, codex] {
                let quoted = format!("'{url}'");
                assert!(command.line.ends_with(&quoted), "{}", command.line);
            }
            assert!(cursor.line.contains(&format!("\"{url}\"")));
        }
        let [claude, ..] = lines("http://127.0.0.1:7777/mcp");
        assert!(!claude.line.contains('\''), "{}", claude.line);
    }
}
