//! Requests with a cookie: no page but ours changes anything, on any route.

use http::Method;

use crate::client::{Asking, Browser, Place};
use crate::document::{Operation, document, operations};
use crate::examples::{examples, stage};

/// A request of the dashboard that is in order, where the route is there for a cookie.
async fn dashboard_request(operation: &Operation) -> (Place, Browser, Asking) {
    let example = &examples()[operation.id.as_str()];
    let (place, path, body) = stage(operation, example).await;
    let browser = place.sign_in().await;
    let body = if body.is_empty() {
        "{}".to_owned()
    } else {
        body
    };
    let asking = place
        .ask(&operation.method, &path)
        .json(&body)
        .page(&browser);
    (place, browser, asking)
}

async fn changing_operations() -> Vec<Operation> {
    let document = document(&Place::new()).await;
    let mut all = operations(&document);
    all.retain(|one| one.is_changing() && one.id != "signIn");
    assert!(all.len() > 15, "{}", all.len());
    all
}

#[tokio::test]
async fn a_page_of_the_dashboard_changes_what_it_wants() {
    for operation in changing_operations().await {
        let example = &examples()[operation.id.as_str()];
        let (place, _, asking) = dashboard_request(&operation).await;
        let answer = asking.send().await;
        assert_eq!(answer.status, example.status, "{} {answer:?}", operation.id);
        let deed = example.deed.map(|deed| deed.replace("root:", "operator:"));
        assert_eq!(
            place.house.deeds(),
            Vec::from_iter(deed),
            "{}",
            operation.id
        );
    }
}

/// What other pages could have a browser send, and how each is refused.
fn attacks(
    asking: &Asking,
    browser: &Browser,
    other: &Browser,
) -> [(&'static str, Asking, &'static str); 11] {
    let cookie = browser.cookie.split_once('=').unwrap().1;
    let with = |name, value: &str| asking.clone().with(name, value);
    let old = || asking.clone().without("sec-fetch-site");
    let (csrf, site) = ("x-cocode-csrf", "sec-fetch-site");
    [
        ("no value", asking.clone().without(csrf), "csrf-missing"),
        ("empty", with(csrf, ""), "csrf-wrong"),
        ("guess", with(csrf, "AAAA"), "csrf-wrong"),
        ("another session's", with(csrf, &other.csrf), "csrf-wrong"),
        ("the cookie itself", with(csrf, cookie), "csrf-wrong"),
        ("another site", with(site, "cross-site"), "cross-origin"),
        ("another port", with(site, "same-site"), "cross-origin"),
        ("a typed address", with(site, "none"), "cross-origin"),
        (
            "an old browser, and another site",
            old().with("origin", "http://evil.example"),
            "cross-origin",
        ),
        (
            "an old browser, and a page without an origin",
            old().with("origin", "null"),
            "cross-origin",
        ),
        ("nothing said of the page", old(), "cross-origin"),
    ]
}

#[tokio::test]
async fn no_other_page_changes_anything_on_any_route() {
    for operation in changing_operations().await {
        let (place, browser, asking) = dashboard_request(&operation).await;
        let other = place.sign_in().await;
        for (attack, asking, code) in attacks(&asking, &browser, &other) {
            let answer = asking.send().await;
            assert_eq!(answer.status, 403, "{} {attack}", operation.id);
            assert_eq!(answer.code(), code, "{} {attack}", operation.id);
        }
        // What a form can send comes with a type of its own, and is refused even with everything else.
        let form = asking
            .clone()
            .with("content-type", "application/x-www-form-urlencoded");
        assert_eq!(form.send().await.status, 415, "{}", operation.id);
        assert_eq!(place.house.deeds(), [""; 0], "{}", operation.id);
        // An old browser says where its page comes from.
        let old = asking
            .without("sec-fetch-site")
            .with("origin", "http://localhost:7777");
        let status = examples()[operation.id.as_str()].status;
        assert_eq!(old.send().await.status, status, "{}", operation.id);
    }
}

#[tokio::test]
async fn pages_of_other_origins_do_not_even_read_with_the_cookie() {
    let document = document(&Place::new()).await;
    for operation in operations(&document) {
        // What everybody may read, every page may read.
        if operation.is_changing() || ["getHealth", "getReadiness"].contains(&&*operation.id) {
            continue;
        }
        let (_, _, asking) = dashboard_request(&operation).await;
        for site in ["cross-site", "same-site"] {
            let answer = asking.clone().with("sec-fetch-site", site).open().await;
            assert_eq!(answer.0, 403, "{} {site}", operation.id);
        }
        for site in ["same-origin", "none"] {
            let answer = asking.clone().with("sec-fetch-site", site).open().await;
            assert_ne!(answer.0, 403, "{} {site}", operation.id);
        }
    }
}

#[tokio::test]
async fn a_token_counts_more_than_a_cookie() {
    let place = Place::new();
    let browser = place.sign_in().await;
    let asking = place.get("/api/v1/status").page(&browser);
    assert_eq!(asking.clone().send().await.status, 200);
    assert_eq!(asking.client().send().await.status, 403);
    // And a token needs no CSRF value, since no page can send it unknowingly.
    let asking = place.ask(&Method::POST, "/api/v1/stop").admin();
    assert_eq!(asking.send().await.status, 202);
}
