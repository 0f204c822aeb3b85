//! How commands and addresses are shown: without what looks like a secret, and without characters
//! that would move the cursor or turn the text around.
//!
//! A guess for lists, not for decisions: whoever approves an entry sees all of it.

/// Stands for what is not shown.
const HIDDEN: &str = "…";

/// Parts of the names of options and variables whose values are secret.
const SECRET_NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "authkey",
    "auth",
    "bearer",
    "authorization",
];
/// Names that are secret only as a whole.
const SECRET_WHOLE_NAMES: &[&str] = &["key", "pass", "pwd", "pat", "dsn"];

/// How tokens of well-known services begin.
const TOKEN_PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "pypi-",
    "hf_",
    "dop_v1_",
    "shpat_",
    "SG.",
    "lin_api_",
    "ntn_",
    "tvly-",
    "figd_",
    "pplx-",
    "gsk_",
    "r8_",
    "whsec_",
    "rubygems_",
    "dckr_pat_",
    "sntrys_",
    "nvapi-",
    "xai-",
];
/// The shortest text that is taken for a token because of how it begins.
const MIN_PREFIXED_TOKEN: usize = 16;
/// The shortest part of an address that is taken for a token because of what it is made of.
const MIN_RANDOM_TOKEN: usize = 20;

/// A command line, each word as a shell would want it.
pub(super) fn shown_words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut shown = Vec::new();
    let mut is_value_of_secret = false;
    for word in words {
        let is_option = word.starts_with('-');
        let hidden = match (is_value_of_secret && !is_option, word.split_once('=')) {
            (true, _) if is_opaque(word) => HIDDEN.to_owned(),
            (_, Some((name, value))) if names_a_secret(name) && is_opaque(value) => {
                format!("{}={HIDDEN}", shown_word(name))
            }
            (_, Some((name, value))) if is_token(value) => {
                format!("{}={HIDDEN}", shown_word(name))
            }
            _ if is_token(word) => HIDDEN.to_owned(),
            _ => hidden_bearer(word).unwrap_or_else(|| shown_word(word)),
        };
        is_value_of_secret = is_option && !word.contains('=') && names_a_secret(word);
        shown.push(hidden);
    }
    shown.join(" ")
}

/// An address without credentials, query and fragment, which may be secret, nor parts of its path
/// that look like keys.
pub(crate) fn shown_url(url: &str) -> String {
    let (rest, had_more) = match url.find(['?', '#']) {
        Some(at) => (url.get(..at).unwrap_or_default(), true),
        None => (url, false),
    };
    let shown = match rest.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '\\']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            let path: Vec<&str> = path.split('/').map(shown_segment).collect();
            format!("{scheme}://{host}{}", path.join("/"))
        }
        None => rest.rsplit('@').next().unwrap_or_default().to_owned(),
    };
    let shown = visible(&shown);
    if had_more {
        format!("{shown}?{HIDDEN}")
    } else {
        shown
    }
}

/// A text in which everything can be seen: control characters, and those that change the direction of
/// text, are spelled out.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_invisible(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A word of a command line, quoted where a shell would split it.
fn shown_word(word: &str) -> String {
    // An address among the arguments is shown as addresses are.
    let shown = if word.contains("://") && !word.contains(char::is_whitespace) {
        shown_url(word)
    } else {
        visible(word)
    };
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,${}".contains(character);
    if !shown.is_empty() && shown.chars().all(is_plain) {
        shown
    } else {
        format!("'{}'", shown.replace('\'', r"'\''"))
    }
}

fn shown_segment(segment: &str) -> &str {
    let is_random = segment.len() >= MIN_RANDOM_TOKEN
        && segment.bytes().any(|byte| byte.is_ascii_digit())
        && segment.bytes().any(|byte| byte.is_ascii_alphabetic())
        && segment
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_=.~".contains(&byte));
    if is_random || is_token(segment) {
        HIDDEN
    } else {
        segment
    }
}

/// `Authorization: Bearer xyz` in one word, as programs that pass headers on want it.
fn hidden_bearer(word: &str) -> Option<String> {
    let (name, value) = word.split_once(':')?;
    let value = value.trim_start();
    let last = value.rsplit(char::is_whitespace).next()?;
    let is_secret = names_a_secret(name) && !value.starts_with("//") && is_opaque(last);
    is_secret.then(|| format!("{}:{HIDDEN}", shown_word(name)))
}

/// Whether an option or variable of this name holds a secret.
fn names_a_secret(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase();
    // One that names where the secret is does not hold it.
    let is_pointer = ["env", "var", "file", "path", "name", "url", "type", "id"];
    let mut words = name.split(['-', '_', '.', ':']);
    if words
        .clone()
        .next_back()
        .is_some_and(|last| is_pointer.contains(&last))
    {
        return false;
    }
    let is_whole = words.any(|word| SECRET_WHOLE_NAMES.contains(&word));
    let joined: String = name.split(['-', '_', '.']).collect();
    is_whole || SECRET_NAMES.iter().any(|part| joined.contains(part))
}

/// Whether a value could be a secret: not a reference to one, and not so shaped that it could be
/// anything worth reading, such as a command.
fn is_opaque(value: &str) -> bool {
    let is_reference = value.starts_with("${") || value.starts_with("keyring:");
    let is_readable = |character: char| character.is_whitespace() || ";|&`()<>".contains(character);
    !value.is_empty() && !is_reference && !value.contains(is_readable)
}

/// Whether a text looks like a token of a well-known service.
fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.=+/~".contains(&byte);
    text.len() >= MIN_PREFIXED_TOKEN
        && text.bytes().all(is_part)
        && TOKEN_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}
