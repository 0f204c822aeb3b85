//! What looks like a secret: by the name it is given, or by how it begins and what it is made of.

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

/// Whether an option or variable of this name holds a secret.
pub(super) fn names_a_secret(name: &str) -> bool {
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

/// Whether a character makes a text worth reading, because it could be part of a command.
pub(super) fn is_readable(character: char) -> bool {
    character.is_whitespace() || ";|&`()<>".contains(character)
}

/// Whether a text looks like a token of a well-known service.
pub(super) fn is_token(text: &str) -> bool {
    text.len() >= MIN_PREFIXED_TOKEN
        && text
            .chars()
            .all(|one| is_token_part(one) || "=/".contains(one))
        && TOKEN_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

/// Whether a character can stand in the middle of a token.
pub(super) fn is_token_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_.+~".contains(character)
}

/// Whether a text is made as keys are, and not as words.
pub(super) fn looks_random(text: &str) -> bool {
    text.len() >= MIN_RANDOM_TOKEN
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_=.~".contains(&byte))
}
