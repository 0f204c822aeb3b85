//! Cuts a query into clauses, and finds the files and addresses in it.

use super::paths::{Mention, mention_in};
use super::words::words;

/// Words before a path that tell what is to be done with it.
const WORDS_BEFORE_PATH: usize = 8;

/// The clauses of a query, in words, and what else it mentions.
#[derive(Debug, Default)]
pub(super) struct Clauses {
    pub(super) said: Vec<Vec<String>>,
    pub(super) mentions: Vec<Mention>,
    /// Whether what is mentioned is to be read, rather than written.
    pub(super) is_read: Vec<bool>,
    recent: Vec<String>,
}

impl Clauses {
    pub(super) fn of(text: &str) -> Self {
        let mut clauses = Self::default();
        clauses.read(text);
        clauses
    }

    fn read(&mut self, text: &str) {
        let mut clause = Vec::new();
        for token in text.split_whitespace() {
            if let Some(mention) = mention_in(token) {
                self.is_read.push(self.wants_to_read());
                for word in mention.words() {
                    clause.push(word);
                }
                self.mentions.push(mention);
            } else if is_connective(token) {
                self.said.push(std::mem::take(&mut clause));
            } else {
                for piece in token.split_inclusive(is_wide_stop) {
                    words(piece, |word| {
                        clause.push(word.to_owned());
                        self.recent.push(word.to_owned());
                    });
                    if piece.ends_with(is_wide_stop) {
                        self.said.push(std::mem::take(&mut clause));
                    }
                }
            }
            if token.ends_with(['.', ',', ';', ':', '!', '?']) {
                self.said.push(std::mem::take(&mut clause));
            }
        }
        self.said.push(clause);
        self.said.retain(|clause| !clause.is_empty());
    }

    /// Whether the words before a path say that it is there already.
    fn wants_to_read(&self) -> bool {
        let before = self.recent.iter().rev().take(WORDS_BEFORE_PATH);
        for word in before {
            match word.as_str() {
                "read" | "open" | "load" | "pars" | "locat" | "under" | "convert" | "from"
                | "analyz" | "view" | "extract" | "insid" | "upload" | "send" | "check" => {
                    return true;
                }
                "save" | "write" | "store" | "export" | "gener" | "creat" | "output" | "produc"
                | "report" | "summari" | "download" | "put" | "render" => return false,
                _ => {}
            }
        }
        false
    }
}

/// Whether a word stands between two things that are asked for.
fn is_connective(token: &str) -> bool {
    const CONNECTIVES: [&str; 12] = [
        "and", "then", "also", "after", "finally", "plus", "but", "while", "which", "that", "und",
        "y",
    ];
    CONNECTIVES
        .iter()
        .any(|connective| token.eq_ignore_ascii_case(connective))
}

/// Whether a character ends a clause in scripts without spaces.
fn is_wide_stop(character: char) -> bool {
    matches!(character, '，' | '。' | '；' | '：' | '！' | '？' | '、')
}
