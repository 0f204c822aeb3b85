//! Files of the dashboard, headers of every answer, and the pages for machines.

use http::Method;

use crate::client::Place;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'";

#[tokio::test]
async fn every_answer_tells_browsers_to_be_careful() {
    let place = Place::new();
    for (method, path, status) in [
        (Method::GET, "/", 200),
        (Method::GET, "/nothing", 404),
        (Method::POST, "/", 405),
        (Method::GET, "/healthz", 200),
        (Method::GET, "/metrics", 401),
        (Method::GET, "/api/v1/status", 401),
        (Method::GET, "/api/v1/%zz", 400),
        (Method::PUT, "/api/v1/status", 405),
    ] {
        let answer = place.ask(&method, path).send().await;
        assert_eq!(answer.status, status, "{path}");
        for (name, value) in [
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("x-frame-options", "DENY"),
        ] {
            assert_eq!(answer.header(name), value, "{path} {name}");
        }
        assert_eq!(answer.header("access-control-allow-origin"), "", "{path}");
    }
}

#[tokio::test]
async fn the_dashboard_is_there_for_everybody_and_sent_once() {
    let place = Place::new();
    let first = place.get("/").send().await;
    assert_eq!(first.status, 200);
    assert_eq!(first.kind(), "text/html; charset=utf-8");
    assert_eq!(first.header("cache-control"), "no-cache");
    assert!(first.text.starts_with("<!doctype html>"), "{}", first.text);
    let tag = first.header("etag");
    assert!(tag.starts_with('"') && tag.len() > 40, "{tag}");
    let weak = format!("\"other\", W/{tag}");
    for known in [tag, &weak, "*"] {
        let again = place
            .get("/index.html")
            .with("if-none-match", known)
            .send()
            .await;
        assert_eq!((again.status, &*again.text), (304, ""), "{known}");
        assert_eq!(again.header("etag"), tag);
    }
    let other = place
        .get("/")
        .with("if-none-match", "\"other\"")
        .send()
        .await;
    assert_eq!(other.status, 200);
    let head = place.ask(&Method::HEAD, "/").send().await;
    assert_eq!(
        (head.status, &*head.text, head.header("etag")),
        (200, "", tag)
    );
    let post = place.post("/", "{}").send().await;
    assert_eq!((post.status, post.header("allow")), (405, "GET, HEAD"));
}

#[tokio::test]
async fn no_path_leads_out_of_the_dashboard() {
    let place = Place::new();
    for path in [
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "/..%2fCargo.toml",
        "//index.html",
        "/index.html/",
        "/.hidden",
        "/Index.html",
    ] {
        assert_eq!(place.get(path).send().await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn health_is_a_word_and_readiness_says_what_is_waited_for() {
    let place = Place::new();
    let health = place.get("/healthz").send().await;
    assert_eq!((health.status, &*health.text), (200, "ok\n"));
    let head = place.ask(&Method::HEAD, "/healthz").send().await;
    assert_eq!((head.status, &*head.text), (200, ""));
    let ready = place.get("/readyz").send().await;
    assert_eq!((ready.status, &ready.json()["ready"]), (200, &true.into()));
    place.house.be_ready(false);
    let not = place.get("/readyz").send().await;
    assert_eq!(not.status, 503);
    assert_eq!(not.json()["waitingFor"][0], "the first configuration");
    assert_eq!(place.get("/healthz").send().await.status, 200);
}
