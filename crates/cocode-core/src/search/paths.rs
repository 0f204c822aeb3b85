//! Files and addresses that a query mentions, and what they tell about the tools that are needed.

use super::words::words;

/// A file or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mention {
    /// A file, by the ending of its name, or a folder.
    File(Option<&'static Kind>),
    /// An address, by the words of its host.
    Address(Vec<String>),
}

/// What files with an ending are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    endings: &'static [&'static str],
    /// What tools for such files call them.
    words: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    kind(&["docx", "doc", "odt", "rtf"], &["word", "document"]),
    kind(&["xlsx", "xls", "ods", "xlsm"], &["excel", "spreadsheet"]),
    kind(&["csv", "tsv"], &["csv", "data"]),
    kind(&["pptx", "ppt", "odp", "key"], &["presentation", "slide"]),
    kind(&["pdf"], &["pdf"]),
    kind(&["md", "markdown", "rst"], &["markdown", "text"]),
    kind(&["txt", "log", "bib", "tex", "ini", "conf"], &["text"]),
    kind(
        &["png", "jpg", "jpeg", "gif", "webp", "bmp", "tiff", "heic"],
        &["image"],
    ),
    kind(&["svg"], &["image", "svg"]),
    kind(&["wav", "mp3", "flac", "ogg", "m4a", "aac"], &["audio"]),
    kind(&["mp4", "mov", "avi", "mkv", "webm"], &["video"]),
    kind(
        &[
            "py", "js", "ts", "tsx", "jsx", "rs", "go", "java", "c", "cpp", "h", "cs", "rb", "php",
            "sh", "swift", "kt", "lua", "vue", "css",
        ],
        &["code"],
    ),
    kind(&["json", "jsonl", "yaml", "yml", "toml", "xml"], &["data"]),
    kind(&["html", "htm"], &["html"]),
    kind(&["zip", "tar", "gz", "tgz", "7z", "rar"], &["archive"]),
    kind(&["sqlite", "db", "sql", "parquet"], &["database"]),
    kind(&["ics"], &["calendar", "event"]),
    kind(&["eml", "msg"], &["email"]),
];

const fn kind(endings: &'static [&'static str], words: &'static [&'static str]) -> Kind {
    Kind { endings, words }
}

/// Parts of hosts that say nothing.
const HOST_NOISE: [&str; 10] = [
    "www",
    "com",
    "org",
    "net",
    "io",
    "http",
    "https",
    "dev",
    "co",
    "localhost",
];

/// Endings that make no file of something without a path: they are parts of other names, too.
const ENDINGS_OF_WORDS: [&str; 5] = [".js", ".c", ".h", ".key", ".go"];

/// What is mentioned where a query has this between two spaces.
pub(super) fn mention_in(token: &str) -> Option<Mention> {
    let token = token.trim_matches(|character: char| {
        !(character.is_alphanumeric() || matches!(character, '/' | '~' | '.' | '\\' | '_'))
    });
    let token = token.trim_end_matches(['.', ',']);
    if let Some((_, rest)) = token.split_once("://") {
        return Some(address(rest));
    }
    if token.starts_with("www.") {
        return Some(address(token));
    }
    let ending = ending(token);
    let is_rooted = ["/", "~/", "./", "../", "\\\\"]
        .iter()
        .any(|root| token.starts_with(root) && token.len() > root.len());
    let mut drive = token.chars();
    let has_drive = drive
        .next()
        .is_some_and(|letter| letter.is_ascii_alphabetic())
        && drive.next() == Some(':')
        && drive.next() == Some('\\');
    let is_path = is_rooted || has_drive;
    let is_name = ending.is_some() && !ENDINGS_OF_WORDS.iter().any(|end| token.ends_with(end));
    (is_path || is_name).then_some(Mention::File(ending))
}

fn address(rest: &str) -> Mention {
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let mut found = Vec::new();
    words(host, |word| {
        if !HOST_NOISE.contains(&word) {
            found.push(word.to_owned());
        }
    });
    Mention::Address(found)
}

/// The kind of a file, by the ending of its name.
fn ending(token: &str) -> Option<&'static Kind> {
    let (name, ending) = token.rsplit_once('.')?;
    let is_name = name.chars().next_back().is_some_and(char::is_alphanumeric);
    let is_kind = |kind: &&Kind| {
        let mut endings = kind.endings.iter();
        endings.any(|known| known.eq_ignore_ascii_case(ending))
    };
    KINDS.iter().filter(|_| is_name).find(is_kind)
}

impl Mention {
    /// The words that stand in the query.
    pub(super) fn words(&self) -> Vec<String> {
        match self {
            Self::File(_) => Vec::new(),
            Self::Address(words) => words.clone(),
        }
    }

    /// Words that the query might as well have.
    pub(super) fn implied_words(&self) -> impl Iterator<Item = &'static str> {
        let (first, more): (_, &'static [&'static str]) = match self {
            Self::File(Some(kind)) => ("file", kind.words),
            Self::File(None) => ("file", &[]),
            Self::Address(_) => ("url", &[]),
        };
        std::iter::once(first).chain(more.iter().copied())
    }

    /// What is asked for by mentioning it.
    pub(super) fn asks_for(&self, is_read: bool) -> Option<String> {
        let Self::File(kind) = self else {
            return None;
        };
        let verb = if is_read { "read" } else { "write" };
        let words = kind.map_or(&[][..], |kind| kind.words);
        Some(
            format!("{verb} file {}", words.join(" "))
                .trim_end()
                .to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Mention, mention_in};

    #[track_caller]
    fn check(token: &str, expected: Option<&str>) {
        let asks = mention_in(token).map(|mention| match &mention {
            Mention::File(_) => mention.asks_for(false).unwrap_or_default(),
            Mention::Address(words) => format!("address {}", words.join(" ")),
        });
        assert_eq!(asks.as_deref(), expected, "{token}");
    }

    #[test]
    fn files_are_known_by_path_or_ending() {
        check("/tmp/report.md.", Some("write file markdown text"));
        check("\"notes.TXT\"", Some("write file text"));
        check("~/x", Some("write file"));
        check("C:\\data\\x.xlsx", Some("write file excel spreadsheet"));
        check("(./a.docx),", Some("write file word document"));
    }

    #[test]
    fn addresses_are_known() {
        check("https://www.example.com/a.pdf", Some("address exampl"));
        check("www.weather.org", Some("address weather"));
    }

    #[test]
    fn words_are_no_files() {
        for token in [
            "and/or", "/", "Next.js?", "e.g.", "3.5", "etc.", "a.", ".md", "...",
        ] {
            check(token, None);
        }
    }
}
