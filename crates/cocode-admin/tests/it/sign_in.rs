//! Signing in and out: codes that are good once, guesses, cookies.

use std::time::Duration;

use cocode_admin::{AdminOptions, CODE_LIFETIME, MAX_GUESSES, SESSION_IDLE};
use futures_util::future::join_all;
use serde_json::json;

use crate::client::{Answer, Place};

async fn try_code(place: &Place, code: &str) -> Answer {
    let body = json!({ "code": code }).to_string();
    place.post("/api/v1/sign-in", &body).send().await
}

#[tokio::test(start_paused = true)]
async fn a_code_lets_one_browser_in_and_no_second() {
    let place = Place::new();
    let code = place.admin.new_code().unwrap();
    let answer = try_code(&place, code.code.expose()).await;
    assert_eq!(answer.status, 200);
    let cookie = answer.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "{cookie}");
    let again = try_code(&place, code.code.expose()).await;
    assert_eq!((again.status, &*again.code()), (401, "code-wrong"));
    assert_eq!(again.header("set-cookie"), "");
}

#[tokio::test]
async fn of_many_who_try_the_same_code_at_once_one_gets_in() {
    let place = Place::new();
    let code = place.admin.new_code().unwrap();
    let tries = (0..8).map(|_| try_code(&place, code.code.expose()));
    let answers = join_all(tries).await;
    let n_in = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(n_in, 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_guesses_is_soon_not_listened_to() {
    let place = Place::new();
    let code = place.admin.new_code().unwrap();
    for number in 0..MAX_GUESSES {
        let answer = try_code(&place, &format!("guess-{number}")).await;
        assert_eq!(answer.status, 401);
    }
    let answer = try_code(&place, code.code.expose()).await;
    assert_eq!((answer.status, &*answer.code()), (429, "too-many-codes"));
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    tokio::time::advance(Duration::from_secs(wait)).await;
    assert_eq!(try_code(&place, code.code.expose()).await.status, 200);
    let metrics = place.get("/metrics").admin().send().await.text;
    let line = format!("cocode_refused_total{{reason=\"authentication\"}} {MAX_GUESSES}\n");
    assert!(metrics.contains(&line), "{metrics}");
    assert!(metrics.contains("cocode_refused_total{reason=\"limit\"} 1\n"));
}

#[tokio::test(start_paused = true)]
async fn a_code_is_too_old_after_ten_minutes_and_a_new_one_can_be_made() {
    let place = Place::new();
    let late = place.admin.new_code().unwrap();
    tokio::time::advance(CODE_LIFETIME).await;
    assert_eq!(try_code(&place, late.code.expose()).await.status, 401);
    let made = place
        .post("/api/v1/sign-in/code", "{}")
        .admin()
        .send()
        .await;
    assert_eq!(made.status, 201);
    let made = made.json();
    let code = made["code"].as_str().unwrap();
    assert_eq!(try_code(&place, code).await.status, 200);
}

#[tokio::test]
async fn no_other_page_signs_anybody_in() {
    let place = Place::new();
    let code = place.admin.new_code().unwrap();
    let body = json!({ "code": code.code.expose() }).to_string();
    let asking = place.post("/api/v1/sign-in", &body);
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "http://evil.example"),
    ] {
        let answer = asking.clone().with(name, value).send().await;
        assert_eq!((answer.status, &*answer.code()), (403, "cross-origin"));
    }
    // The code was not used up by that.
    assert_eq!(
        asking
            .with("sec-fetch-site", "same-origin")
            .send()
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn signing_out_makes_the_cookie_worthless() {
    let place = Place::new();
    let browser = place.sign_in().await;
    let session = place.get("/api/v1/session").page(&browser);
    let told = session.clone().send().await.json();
    assert_eq!(told["name"], "operator");
    assert_eq!(told["isAdmin"], true);
    assert_eq!(told["version"], "1.2.3");
    assert_eq!(told["csrf"], *browser.csrf);
    let out = place
        .post("/api/v1/sign-out", "{}")
        .page(&browser)
        .send()
        .await;
    assert_eq!(out.status, 204);
    let cleared = out.header("set-cookie");
    assert!(cleared.starts_with("cocode_session=;"), "{cleared}");
    assert!(cleared.contains("Max-Age=0"), "{cleared}");
    assert_eq!(session.send().await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_uses_ends() {
    let place = Place::new();
    let browser = place.sign_in().await;
    let status = place.get("/api/v1/status").page(&browser);
    tokio::time::advance(SESSION_IDLE.saturating_sub(Duration::from_secs(1))).await;
    assert_eq!(status.clone().send().await.status, 200);
    tokio::time::advance(SESSION_IDLE).await;
    assert_eq!(status.send().await.status, 401);
}

#[tokio::test]
async fn over_https_the_cookie_never_goes_in_the_clear() {
    let place = Place::with(AdminOptions {
        is_https: true,
        ..AdminOptions::default()
    });
    let code = place.admin.new_code().unwrap();
    let answer = try_code(&place, code.code.expose()).await;
    let cookie = answer.header("set-cookie");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
}
