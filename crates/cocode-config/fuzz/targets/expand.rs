//! Values with variables and references to secrets.
#![no_main]

use cocode_config::{ExpandError, expand_plain, expand_secret, variables_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let variables = |name: &str| match name {
        "A" => Some("${B}".to_owned()),
        "E" => Some(String::new()),
        _ => None,
    };
    let secret = expand_secret(text, &variables);
    match expand_plain(text, &variables) {
        Ok(plain) => assert_eq!(secret.ok().and_then(|one| one.as_literal()), Some(plain)),
        Err(ExpandError::SecretNotHere) => {}
        Err(error) => assert_eq!(secret.err(), Some(error)),
    }
    let _names = variables_of(text);
});
