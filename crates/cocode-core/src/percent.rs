//! Percent-encoding of text in addresses.

use std::fmt::Write as _;

/// The text with every character that could mean something in an address by its bytes (RFC 3986).
pub fn percent_encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _never_fails = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::percent_encode;

    #[test]
    fn text_means_nothing_but_itself_in_an_address() {
        assert_eq!(percent_encode("db-1.example~_x"), "db-1.example~_x");
        assert_eq!(
            percent_encode("p@ss/wörd?#%"),
            "p%40ss%2Fw%C3%B6rd%3F%23%25"
        );
    }
}
