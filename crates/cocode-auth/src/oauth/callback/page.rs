//! The pages that a browser sees at the end of a sign-in, and their headers.
//!
//! They hold no script: one could take the code out of the address bar, but the code is bound to
//! our verifier and is redeemed a moment later, so it is worth nothing, while a page without any
//! script cannot be made to run one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::oauth::authorize::{CallbackError, untrusted};

/// Readable in light and dark, without anything to fetch.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--quiet:#4b545e;--paper:#fff}\
@media(prefers-color-scheme:dark){:root{--ink:#e8edf2;--quiet:#a9b4c0;--paper:#14181d}}\
body{margin:0;background:var(--paper);color:var(--ink);font:1.125rem/1.6 system-ui,sans-serif}\
main{max-width:36rem;margin:18vh auto 0;padding:0 1.5rem}\
h1{font-size:1.6rem;line-height:1.25;margin:0 0 1rem}\
p{margin:0 0 .75rem;overflow-wrap:anywhere}\
p+p{color:var(--quiet)}";

/// An answer to a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    status: &'static str,
    title: String,
    lines: Vec<String>,
}

impl Page {
    /// The answer is the one that was waited for, and it is good.
    pub(super) fn signed_in(server_name: &str) -> Self {
        Self {
            status: "200 OK",
            title: format!("Signed in to {}", untrusted(server_name)),
            lines: vec!["You may close this tab. cocode goes on by itself.".to_owned()],
        }
    }

    /// The answer is the one that was waited for, and it gives no code.
    pub(super) fn failed(server_name: &str, error: &CallbackError) -> Self {
        Self {
            status: "200 OK",
            title: format!("Not signed in to {}", untrusted(server_name)),
            lines: vec![
                sentence(&error.to_string()),
                sentence(error.hint()),
                "You may close this tab.".to_owned(),
            ],
        }
    }

    /// The answer belongs to nothing that is waited for.
    pub(super) fn foreign(server_name: &str, error: &CallbackError) -> Self {
        Self {
            status: "400 Bad Request",
            title: "This is not the answer that cocode waits for".to_owned(),
            lines: vec![
                sentence(&error.to_string()),
                sentence(error.hint()),
                format!(
                    "cocode still waits for you to sign in to {}.",
                    untrusted(server_name)
                ),
            ],
        }
    }

    /// Another answer was quicker.
    pub(super) fn late() -> Self {
        Self::short(
            "410 Gone",
            "This sign-in is already answered",
            "You may close this tab.",
        )
    }

    pub(super) fn not_found() -> Self {
        Self::short(
            "404 Not Found",
            "There is nothing here",
            "cocode waits here for the end of a sign-in, and only at another address.",
        )
    }

    pub(super) fn wrong_method() -> Self {
        Self::short(
            "405 Method Not Allowed",
            "This can only be opened",
            "cocode waits here for a browser that is sent back after signing in.",
        )
    }

    pub(super) fn wrong_host() -> Self {
        Self::short(
            "421 Misdirected Request",
            "This machine was not meant",
            "The request names another host than the one that cocode waits at.",
        )
    }

    pub(super) fn unreadable() -> Self {
        Self::short(
            "400 Bad Request",
            "This request cannot be read",
            "cocode waits here for a browser that is sent back after signing in.",
        )
    }

    pub(super) fn long_line() -> Self {
        Self::short(
            "414 URI Too Long",
            "This address is too long",
            "No honest server sends a browser back with so long an address.",
        )
    }

    pub(super) fn long_head() -> Self {
        Self::short(
            "431 Request Header Fields Too Large",
            "This request is too long",
            "No browser sends so many headers to an address of its own machine.",
        )
    }

    fn short(status: &'static str, title: &str, line: &str) -> Self {
        Self {
            status,
            title: title.to_owned(),
            lines: vec![line.to_owned()],
        }
    }

    /// The whole answer as it goes over the wire; for `HEAD` without its body.
    pub(super) fn response(&self, body: Body) -> Vec<u8> {
        let html = self.html();
        let allow = if self.status.starts_with("405") {
            "Allow: GET\r\n"
        } else {
            ""
        };
        let mut response = format!(
            "HTTP/1.1 {status}\r\n\
             Content-Type: text/html; charset=utf-8\r\n\
             Content-Length: {length}\r\n\
             {allow}\
             Connection: close\r\n\
             Cache-Control: no-store\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'sha256-{style}'; \
             frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n\
             Referrer-Policy: no-referrer\r\n\
             X-Content-Type-Options: nosniff\r\n\
             \r\n",
            status = self.status,
            length = html.len(),
            style = STANDARD.encode(Sha256::digest(STYLE)),
        );
        if body == Body::Sent {
            response.push_str(&html);
        }
        response.into_bytes()
    }

    fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut lines = String::new();
        for line in &self.lines {
            lines.push_str("<p>");
            lines.push_str(&escaped(line));
            lines.push_str("</p>\n");
        }
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title} · cocode</title>\n<style>{STYLE}</style>\n</head>\n\
             <body>\n<main>\n<h1>{title}</h1>\n{lines}</main>\n</body>\n</html>\n"
        )
    }
}

/// Whether a page goes out with its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Sent,
    Left,
}

/// Our messages begin small and end without a stop, as parts of longer ones do.
fn sentence(message: &str) -> String {
    let mut characters = message.chars();
    let first = characters.next().map(|first| {
        // An address stays as it is.
        if message.starts_with("http") {
            first.to_string()
        } else {
            first.to_uppercase().to_string()
        }
    });
    let mut text = first.unwrap_or_default();
    text.push_str(characters.as_str());
    if !text.ends_with(['.', '!', '?', '…']) {
        text.push('.');
    }
    text
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(page: &Page) -> String {
        String::from_utf8(page.response(Body::Sent)).unwrap()
    }

    #[test]
    fn the_style_is_the_one_that_the_policy_allows() {
        let response = sent(&Page::signed_in("files"));
        let style = response.split("<style>").nth(1).unwrap();
        let style = style.split("</style>").next().unwrap();
        let hash = STANDARD.encode(Sha256::digest(style));
        assert!(
            response.contains(&format!(
                "Content-Security-Policy: default-src 'none'; style-src 'sha256-{hash}'; \
                 frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n"
            )),
            "{response}"
        );
        assert!(!response.contains("<script"), "{response}");
    }

    #[test]
    fn every_page_is_whole_and_keeps_to_itself() {
        for page in [
            Page::signed_in("files"),
            Page::late(),
            Page::not_found(),
            Page::wrong_method(),
            Page::wrong_host(),
            Page::unreadable(),
            Page::long_line(),
            Page::long_head(),
            Page::failed("files", &CallbackError::StateMissing),
            Page::foreign("files", &CallbackError::StateMissing),
        ] {
            let response = sent(&page);
            let (head, body) = response.split_once("\r\n\r\n").unwrap();
            for part in [
                format!("Content-Length: {}", body.len()).as_str(),
                "Connection: close",
                "Cache-Control: no-store",
                "Referrer-Policy: no-referrer",
                "X-Content-Type-Options: nosniff",
                "Content-Type: text/html; charset=utf-8",
            ] {
                assert!(head.contains(part), "{head} lacks {part}");
            }
            for part in ["<html lang=\"en\">", "<title>", "<h1>", "<main>", "<p>"] {
                assert!(body.contains(part), "{body} lacks {part}");
            }
            assert_eq!(
                head.contains("\r\nAllow: GET"),
                head.contains(" 405 "),
                "{head}"
            );
            let head_only = String::from_utf8(page.response(Body::Left)).unwrap();
            assert_eq!(head_only, format!("{head}\r\n\r\n"));
        }
    }

    #[test]
    fn whatever_others_wrote_is_text() {
        let hostile = "<img src=x onerror=\"alert('1')\">&\r\nSet-Cookie: a=b";
        let error = CallbackError::Refused {
            issuer: hostile.to_owned(),
            error: hostile.to_owned(),
            description: Some(hostile.to_owned()),
        };
        for page in [
            Page::signed_in(hostile),
            Page::failed(hostile, &error),
            Page::foreign(hostile, &error),
        ] {
            let response = sent(&page);
            let (head, body) = response.split_once("\r\n\r\n").unwrap();
            assert!(!head.contains("Set-Cookie"), "{head}");
            assert!(
                !body.contains("<img") && !body.contains("\"alert"),
                "{body}"
            );
            assert!(
                body.contains("&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;"),
                "{body}"
            );
        }
    }

    #[test]
    fn messages_become_sentences() {
        for (message, expected) in [
            ("try again", "Try again."),
            ("Really?", "Really?"),
            ("https://a.example failed", "https://a.example failed."),
            ("", "."),
        ] {
            assert_eq!(sentence(message), expected);
        }
    }
}
