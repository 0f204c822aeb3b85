//! The cookie of a session: its name, and the headers that give and take it.

use std::time::Duration;

use http::HeaderValue;

use crate::secret::Secret;
use crate::sessions::SESSION_LIFETIME;

/// What the name of the cookie begins with, before the port of the gateway.
pub const SESSION_COOKIE: &str = "cocode_session";

/// Browsers let nobody set a cookie of such a name but the host itself, by https.
const OF_HOST: &str = "__Host-";

/// How the cookie of a gateway looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cookie {
    name: String,
    is_secure: bool,
}

impl Cookie {
    /// The cookie of a gateway at that port. Browsers keep cookies by host and not by port, so
    /// gateways of one host are told apart by the name.
    pub(crate) fn new(port: Option<u16>, is_secure: bool) -> Self {
        let before = if is_secure { OF_HOST } else { "" };
        let after = port.map(|port| format!("_{port}")).unwrap_or_default();
        Self {
            name: format!("{before}{SESSION_COOKIE}{after}"),
            is_secure,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The header that gives a browser its cookie.
    pub(crate) fn set(&self, value: &Secret) -> Option<HeaderValue> {
        self.header(value.expose(), SESSION_LIFETIME)
    }

    /// The header that takes the cookie away again.
    pub(crate) fn clear(&self) -> Option<HeaderValue> {
        self.header("", Duration::ZERO)
    }

    fn header(&self, value: &str, age: Duration) -> Option<HeaderValue> {
        let Self { name, is_secure } = self;
        let secure = if *is_secure { "; Secure" } else { "" };
        let text = format!(
            "{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{secure}",
            age.as_secs()
        );
        let mut header = HeaderValue::try_from(text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::Cookie;
    use crate::secret::Secret;

    #[test]
    fn cookies_are_for_this_site_alone() {
        let value = Secret::new("abc");
        let plain = Cookie::new(Some(7777), false).set(&value).unwrap();
        assert_eq!(
            plain.to_str().unwrap(),
            "cocode_session_7777=abc; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200"
        );
        assert!(plain.is_sensitive());
        let secure = Cookie::new(Some(7777), true);
        assert_eq!(secure.name(), "__Host-cocode_session_7777");
        let cleared = secure.clear().unwrap();
        let cleared = cleared.to_str().unwrap();
        assert!(cleared.ends_with("; Max-Age=0; Secure"), "{cleared}");
        assert_eq!(Cookie::new(None, false).name(), "cocode_session");
    }
}
