//! Headers of every answer: what browsers may do with it.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Nothing from elsewhere, nothing inline, nothing framed, and no text that becomes markup.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'";

/// Adds them, where an answer does not say otherwise.
pub(crate) fn secure(headers: &mut HeaderMap) {
    let all: [(HeaderName, &'static str); 7] = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        // What the API says is true now and not later, and not for everybody.
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in all {
        headers
            .entry(name)
            .or_insert_with(|| HeaderValue::from_static(value));
    }
}
