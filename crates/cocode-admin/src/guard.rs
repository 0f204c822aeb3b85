//! Who makes a request, and whether they may: by a token, by a cookie, or by the way they came.

use std::sync::Arc;

use http::{HeaderMap, Method, header};
use url::Url;

use crate::admin::Inner;
use crate::ask::is_read;
use crate::house::{Caller, Credential};
use crate::model::Authentication;
use crate::refusal::{Refusal, RefusalStatus};
use crate::route::{Access, Route};
use crate::sessions::Session;

/// The header that changing requests with a cookie have to bring.
pub const CSRF_HEADER: &str = "x-cocode-csrf";

/// The name of whoever has signed in by a one-time code.
pub const OPERATOR: &str = "operator";
/// The name of whoever comes by a way that only the user has.
const LOCAL: &str = "local";

/// Who makes a request, as far as whoever took it knows. Cookies are looked at here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// They brought a token that is good.
    Bearer {
        /// Whose token it is.
        name: Arc<str>,
        /// Whether it opens the management API.
        is_admin: bool,
    },
    /// They brought nothing.
    Anonymous,
    /// They came by a way that only the user of the gateway has, such as a socket that belongs to that
    /// user; never over the network.
    Local,
}

/// Somebody who has shown who they are.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) caller: Caller,
    pub(crate) is_admin: bool,
    /// The session of the cookie, if they have shown one.
    pub(crate) session: Option<Session>,
}

/// Lets a request in, or not.
pub(crate) fn admit(
    inner: &Inner,
    who: Who,
    route: &Route,
    headers: &HeaderMap,
) -> Result<Option<Visitor>, Refusal> {
    let is_read_by_all = route.access == Access::Anyone && !route.is_changing();
    if who == Who::Local && !is_read_by_all && is_of_browser(headers) {
        return Err(cross_origin());
    }
    let visitor = identify(inner, who, headers);
    let session = visitor.as_ref().and_then(|one| one.session.as_ref());
    match (route.access, session) {
        // What everybody may read, every page may read.
        _ if is_read_by_all => {}
        // Signing in has to be meant: no other page may do it behind somebody's back.
        (Access::Anyone, _) => check_origin(inner.into(), headers, Missing::IsFine)?,
        (_, Some(session)) => check_cookie_use(inner.into(), session, route, headers)?,
        (_, None) => {}
    }
    let is_admin = visitor.as_ref().is_some_and(|visitor| visitor.is_admin);
    match route.access {
        Access::Anyone => Ok(visitor),
        Access::Oneself if visitor.is_some() => Ok(visitor),
        Access::Administrators | Access::Watchers if is_admin => Ok(visitor),
        Access::Watchers
            if inner.has_open_metrics
                || inner.house.facts().authentication == Authentication::Open =>
        {
            Ok(visitor)
        }
        Access::Administrators | Access::Watchers if visitor.is_some() => Err(Refusal::new(
            RefusalStatus::Forbidden,
            "not-admin",
            "this token does not open the management API",
        )
        .hint("use the token of an administrator: `cocode gateway token add NAME --admin`")),
        Access::Oneself | Access::Administrators | Access::Watchers => Err(signed_out()),
    }
}

/// Nobody is signed in.
pub(crate) fn signed_out() -> Refusal {
    Refusal::new(
        RefusalStatus::SignedOut,
        "signed-out",
        "nobody is signed in: this needs the token of an administrator, or a one-time code",
    )
    .hint("`cocode gateway code` makes a one-time code; sign in with it at /")
}

fn identify(inner: &Inner, who: Who, headers: &HeaderMap) -> Option<Visitor> {
    let (name, by, is_admin, session) = match who {
        // Whoever says by a token who they are means that, whatever a browser adds.
        Who::Bearer { name, is_admin } => (name, Credential::Bearer, is_admin, None),
        Who::Local => (LOCAL.into(), Credential::Local, true, None),
        Who::Anonymous => {
            let session = inner.sessions.find(inner.cookie().name(), headers)?;
            (OPERATOR.into(), Credential::Cookie, true, Some(session))
        }
    };
    Some(Visitor {
        caller: Caller { name, by },
        is_admin,
        session,
    })
}

/// Whether a browser makes a request. It has no business where only programs of the user come; who passes
/// such a way on to a port for browsers would let every page in.
fn is_of_browser(headers: &HeaderMap) -> bool {
    headers.contains_key("sec-fetch-site") || headers.contains_key(header::ORIGIN)
}

/// Where the pages of the gateway come from.
#[derive(Clone, Copy)]
struct Own<'a> {
    is_https: bool,
    site: Option<&'a Url>,
}

impl<'a> From<&'a Inner> for Own<'a> {
    fn from(inner: &'a Inner) -> Self {
        Self {
            is_https: inner.is_https,
            site: inner.site.as_ref(),
        }
    }
}

/// A browser sends its cookie along whatever page asks for it, so more has to be shown: that this page is
/// ours and, to change something, that it could read the CSRF value.
fn check_cookie_use(
    own: Own<'_>,
    session: &Session,
    route: &Route,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    if !route.is_changing() {
        return check_origin(own, headers, Missing::IsFine);
    }
    check_origin(own, headers, Missing::IsRefused)?;
    let mut values = headers.get_all(CSRF_HEADER).iter();
    let (code, what) = match (values.next(), values.next()) {
        (Some(value), None) if session.is_csrf(value.as_bytes()) => return Ok(()),
        (None, _) => ("csrf-missing", "is missing"),
        _ => ("csrf-wrong", "is not that of this session"),
    };
    Err(Refusal::new(
        RefusalStatus::Forbidden,
        code,
        format!("the header `X-Cocode-CSRF` {what}"),
    )
    .hint("GET /api/v1/session says what it has to be"))
}

/// What it means that a request says nothing about the page that makes it.
#[derive(Clone, Copy)]
enum Missing {
    IsFine,
    IsRefused,
}

fn check_origin(own: Own<'_>, headers: &HeaderMap, missing: Missing) -> Result<(), Refusal> {
    let is_own = match (headers.get("sec-fetch-site"), headers.get(header::ORIGIN)) {
        // The browser knows best. `none` is somebody who typed the address, who changes nothing by that.
        (Some(site), _) => {
            site == "same-origin" || (site == "none" && matches!(missing, Missing::IsFine))
        }
        (None, Some(origin)) => {
            let origin = origin
                .to_str()
                .ok()
                .and_then(|origin| Url::parse(origin).ok());
            origin.is_some_and(|origin| is_own_origin(&origin, own, headers))
        }
        (None, None) => matches!(missing, Missing::IsFine),
    };
    if is_own {
        return Ok(());
    }
    Err(cross_origin())
}

fn cross_origin() -> Refusal {
    Refusal::new(
        RefusalStatus::Forbidden,
        "cross-origin",
        "the request does not come from a page of this gateway",
    )
    .hint("programs bring a token in place of a cookie")
}

/// Whether a page has come from where this request goes to.
fn is_own_origin(origin: &Url, own: Own<'_>, headers: &HeaderMap) -> bool {
    if own
        .site
        .is_some_and(|site| site.origin() == origin.origin())
    {
        return true;
    }
    let is_right_scheme = match origin.scheme() {
        "https" => true,
        // A page that came in the clear may be anybody's.
        "http" => !own.is_https,
        _ => false,
    };
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let Some(host) = host.filter(|_| is_right_scheme) else {
        return false;
    };
    // Read in the same way, so that the usual port is the same as none.
    let own = Url::parse(&format!("{}://{host}/", origin.scheme()));
    own.is_ok_and(|own| own.origin() == origin.origin())
}

/// Whether a method can be answered by a route.
pub(crate) fn answers(route: &Route, method: &Method) -> bool {
    let is_head = *method == Method::HEAD && route.events.is_empty();
    route.method == *method || (is_head && is_read(&route.method))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::{Missing, Own, check_origin};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        pairs.iter().map(pair).collect()
    }

    /// What a request says, over https or not, and whether it may read and change then.
    type Case = (bool, &'static [(&'static str, &'static str)], bool, bool);

    const HOST: (&str, &str) = ("host", "localhost:7777");
    const OWN: (&str, &str) = ("origin", "http://localhost:7777");
    const CROSS: (&str, &str) = ("sec-fetch-site", "cross-site");

    const CASES: [Case; 15] = [
        (false, &[HOST], true, false),
        (
            false,
            &[HOST, ("sec-fetch-site", "same-origin")],
            true,
            true,
        ),
        (false, &[HOST, ("sec-fetch-site", "none")], true, false),
        (
            false,
            &[HOST, ("sec-fetch-site", "same-site")],
            false,
            false,
        ),
        (false, &[HOST, CROSS], false, false),
        (false, &[HOST, OWN], true, true),
        (true, &[HOST, OWN], false, false),
        (
            true,
            &[HOST, ("origin", "https://localhost:7777")],
            true,
            true,
        ),
        (
            false,
            &[HOST, ("origin", "http://localhost:3000")],
            false,
            false,
        ),
        (
            false,
            &[HOST, ("origin", "http://127.0.0.1:7777")],
            false,
            false,
        ),
        (false, &[HOST, ("origin", "null")], false, false),
        (
            false,
            &[HOST, ("origin", "file://localhost:7777")],
            false,
            false,
        ),
        (
            false,
            &[("host", "example.com"), ("origin", "http://example.com:80")],
            true,
            true,
        ),
        // What the browser says of the page counts, whatever the page says.
        (false, &[HOST, OWN, CROSS], false, false),
        (false, &[OWN], false, false),
    ];

    #[test]
    fn only_pages_of_the_same_origin_change_something() {
        for (is_https, pairs, may_read, may_change) in CASES {
            let headers = headers(pairs);
            let own = Own {
                is_https,
                site: None,
            };
            let check = |missing| check_origin(own, &headers, missing).is_ok();
            assert_eq!(check(Missing::IsFine), may_read, "{pairs:?}");
            assert_eq!(check(Missing::IsRefused), may_change, "{pairs:?}");
        }
    }

    #[test]
    fn pages_that_come_by_way_of_a_proxy_are_own_ones() {
        let site = "https://gate.example/".parse().unwrap();
        let own = Own {
            is_https: true,
            site: Some(&site),
        };
        for (origin, expected) in [
            ("https://gate.example", true),
            ("https://gate.example:443", true),
            ("http://gate.example", false),
            ("https://gate.example:8443", false),
            ("https://evil.example", false),
        ] {
            let headers = headers(&[HOST, ("origin", origin)]);
            let found = check_origin(own, &headers, Missing::IsRefused).is_ok();
            assert_eq!(found, expected, "{origin}");
        }
    }
}
