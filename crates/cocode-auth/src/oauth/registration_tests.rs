//! Which client we become, what is sent for it, and what becomes of the answers.

use serde_json::{Value, json};
use url::Url;

use super::super::responder::{Responder, body_of, http_for};
use super::{RegistrationError, RegistrationMode, RegistrationWish, register, unregister};
use crate::oauth::{AuthorizationServer, Client, ClientAuthentication, ClientKind};
use crate::secret::Secret;

const CALLBACK: &str = "http://127.0.0.1:7000/callback";
const DOCUMENT: &str = "https://app.example/client.json";
const CREATED: &str = "201 Created\n\n{\"client_id\": \"new\"}";

fn wish() -> RegistrationWish {
    RegistrationWish {
        mode: RegistrationMode::Auto,
        preregistered: None,
        metadata_url: None,
        redirect_uri: CALLBACK.to_owned(),
        scopes: None,
        client_name: "cocode".to_owned(),
    }
}

fn server(metadata: &Value) -> AuthorizationServer {
    let mut all = json!({"issuer": "https://as.example"});
    all.as_object_mut()
        .unwrap()
        .append(&mut metadata.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

fn dynamic_client() -> Client {
    Client {
        id: "kept".to_owned(),
        secret: Some(Secret::new("hidden")),
        authentication: ClientAuthentication::SecretBasic,
        kind: ClientKind::Dynamic,
        redirect_uris: vec![CALLBACK.to_owned()],
        secret_expires_at: Some(1000),
        registration_access_token: None,
        registration_uri: None,
    }
}

/// Registers where the endpoint answers so, and gives back what it got, too.
async fn registered(
    answers: &[&str],
    metadata: Value,
    wish: &RegistrationWish,
) -> (Result<Client, RegistrationError>, Vec<Value>) {
    let routes: Vec<_> = answers
        .iter()
        .map(|answer| ("POST /register", *answer))
        .collect();
    let responder = Responder::start(&routes).await;
    let mut server = server(&metadata);
    server.registration_endpoint = Some(responder.url("/register"));
    let http = http_for(&responder.url("/"));
    let outcome = register(&http, &server, wish, None, 0).await;
    let requests = responder.requests();
    let bodies = requests
        .iter()
        .map(|request| serde_json::from_str(body_of(request)).unwrap());
    (outcome, bodies.collect())
}

/// Becomes a client without speaking to anybody.
async fn chosen(
    metadata: Value,
    wish: &RegistrationWish,
    kept: Option<&Client>,
    now: u64,
) -> Result<Client, RegistrationError> {
    let nowhere: Url = "http://127.0.0.1:1/".parse().unwrap();
    register(&http_for(&nowhere), &server(&metadata), wish, kept, now).await
}

#[tokio::test]
async fn the_client_that_the_user_registered_comes_first() {
    let wish = RegistrationWish {
        preregistered: Some(Client {
            id: "mine".to_owned(),
            authentication: ClientAuthentication::None,
            ..dynamic_client()
        }),
        metadata_url: Some(DOCUMENT.parse().unwrap()),
        ..wish()
    };
    let cases = [
        (json!({}), ClientAuthentication::SecretBasic),
        (
            json!(["client_secret_post", "client_secret_basic"]),
            ClientAuthentication::SecretBasic,
        ),
        (
            json!(["none", "client_secret_post"]),
            ClientAuthentication::SecretPost,
        ),
        (json!(["none"]), ClientAuthentication::SecretBasic),
    ];
    for (methods, expected) in cases {
        let metadata = json!({
            "token_endpoint_auth_methods_supported": methods,
            "client_id_metadata_document_supported": true,
        });
        let client = chosen(metadata, &wish, Some(&dynamic_client()), 0)
            .await
            .unwrap();
        assert_eq!(
            (client.id.as_str(), client.kind),
            ("mine", ClientKind::Preregistered)
        );
        assert_eq!(client.authentication, expected, "{methods}");
    }
}

#[tokio::test]
async fn a_client_without_a_secret_does_not_show_one() {
    let wish = RegistrationWish {
        preregistered: Some(Client {
            secret: None,
            ..dynamic_client()
        }),
        ..wish()
    };
    let metadata = json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]});
    let client = chosen(metadata, &wish, None, 0).await.unwrap();
    assert_eq!(client.authentication, ClientAuthentication::None);
}

#[tokio::test]
async fn a_kept_client_is_used_while_it_is_good() {
    let kept = dynamic_client();
    let by_name = Client {
        redirect_uris: vec!["http://localhost:7000/callback".to_owned()],
        ..kept.clone()
    };
    let elsewhere = Client {
        redirect_uris: vec!["http://127.0.0.1:7001/callback".to_owned()],
        ..kept.clone()
    };
    let public = Client {
        secret: None,
        ..kept.clone()
    };
    let only_documents = RegistrationWish {
        mode: RegistrationMode::Cimd,
        ..wish()
    };
    let cases = [
        (&kept, 999, wish(), true),
        (&kept, 1000, wish(), false),
        (&public, 1000, wish(), true),
        (&by_name, 0, wish(), true),
        (&elsewhere, 0, wish(), false),
        (&kept, 0, only_documents, false),
    ];
    for (client, now, wish, expected) in cases {
        let outcome = chosen(json!({}), &wish, Some(client), now).await;
        assert_eq!(
            outcome.is_ok_and(|found| found.id == "kept"),
            expected,
            "{client:?} {now}"
        );
    }
}

#[tokio::test]
async fn a_document_is_used_where_it_is_taken() {
    let with = |mode, url: Option<&str>| RegistrationWish {
        mode,
        metadata_url: url.map(|url| url.parse().unwrap()),
        ..wish()
    };
    let (auto, cimd) = (RegistrationMode::Auto, RegistrationMode::Cimd);
    let offered = json!({"client_id_metadata_document_supported": true});
    for mode in [auto, cimd] {
        let client = chosen(offered.clone(), &with(mode, Some(DOCUMENT)), None, 0)
            .await
            .unwrap();
        assert_eq!(
            (client.id.as_str(), client.kind),
            (DOCUMENT, ClientKind::MetadataDocument)
        );
        assert_eq!(client.redirect_uris, [CALLBACK]);
        let again = chosen(
            offered.clone(),
            &with(mode, Some(DOCUMENT)),
            Some(&client),
            0,
        )
        .await;
        assert_eq!(again.unwrap().id, DOCUMENT);
    }
    let failures = [
        (json!({}), with(cimd, Some(DOCUMENT)), "takes no documents"),
        (offered.clone(), with(cimd, None), "there is no document"),
        (
            offered.clone(),
            with(auto, Some("https://app.example")),
            "it has no path",
        ),
        (
            offered,
            with(RegistrationMode::Dcr, Some(DOCUMENT)),
            "lets no program register itself",
        ),
        (
            json!({}),
            with(auto, Some(DOCUMENT)),
            "lets no program register itself",
        ),
    ];
    for (metadata, wish, expected) in failures {
        let error = chosen(metadata, &wish, None, 0)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_registration_says_what_we_are() {
    let wish = RegistrationWish {
        scopes: Some(vec!["a".to_owned(), "b".to_owned()]),
        ..wish()
    };
    let (client, bodies) = registered(&[CREATED], json!({}), &wish).await;
    assert_eq!(
        bodies,
        [json!({
            "client_name": "cocode",
            "redirect_uris": [CALLBACK],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "scope": "a b",
            "software_id": "cocode",
            "software_version": env!("CARGO_PKG_VERSION"),
        })]
    );
    let client = client.unwrap();
    assert_eq!(
        (client.id.as_str(), client.kind),
        ("new", ClientKind::Dynamic)
    );
    assert_eq!(client.redirect_uris, [CALLBACK]);
    assert_eq!(client.authentication, ClientAuthentication::None);
}

#[tokio::test]
async fn a_callback_elsewhere_makes_us_a_web_application() {
    for (redirect_uri, expected) in [
        ("https://relay.example/callback", "web"),
        ("https://localhost:1/callback", "native"),
        ("http://[::1]:1/callback", "native"),
    ] {
        let wish = RegistrationWish {
            redirect_uri: redirect_uri.to_owned(),
            ..wish()
        };
        let (_, bodies) = registered(&[CREATED], json!({}), &wish).await;
        assert_eq!(bodies[0]["application_type"], expected, "{redirect_uri}");
        assert_eq!(bodies[0].get("scope"), None);
    }
}

#[tokio::test]
async fn we_register_for_what_the_server_accepts_and_take_what_it_gives() {
    let (basic, post) = (
        ClientAuthentication::SecretBasic,
        ClientAuthentication::SecretPost,
    );
    let none = ClientAuthentication::None;
    let secret = r#", "client_secret": "hidden""#;
    let cases = [
        (
            json!(["none", "client_secret_basic"]),
            "none",
            String::new(),
            none,
        ),
        (
            json!(["client_secret_post", "client_secret_basic"]),
            "client_secret_basic",
            secret.to_owned(),
            basic,
        ),
        (
            json!(["client_secret_post"]),
            "client_secret_post",
            secret.to_owned(),
            post,
        ),
        // It registers something else than what was asked for.
        (
            json!(["none"]),
            "none",
            format!(r#"{secret}, "token_endpoint_auth_method": "client_secret_post""#),
            post,
        ),
        // It gives a secret and does not say what for.
        (json!(null), "none", secret.to_owned(), basic),
        (json!(["none"]), "none", secret.to_owned(), none),
        (
            json!(["none", "client_secret_post"]),
            "none",
            secret.to_owned(),
            post,
        ),
        // It wants a secret and gives none.
        (
            json!(null),
            "none",
            r#", "token_endpoint_auth_method": "client_secret_basic""#.to_owned(),
            none,
        ),
        (
            json!(["client_secret_basic"]),
            "client_secret_basic",
            r#", "client_secret": """#.to_owned(),
            none,
        ),
    ];
    for (methods, asked, given, expected) in cases {
        let answer = format!("201 Created\n\n{{\"client_id\": \"new\"{given}}}");
        let metadata = json!({"token_endpoint_auth_methods_supported": methods});
        let (client, bodies) = registered(&[&answer], metadata, &wish()).await;
        let client = client.unwrap();
        assert_eq!(
            bodies[0]["token_endpoint_auth_method"], asked,
            "{methods} {given}"
        );
        assert_eq!(client.authentication, expected, "{methods} {given}");
        assert!(!format!("{client:?}").contains("hidden"));
    }
}

#[tokio::test]
async fn what_comes_with_a_client_is_kept() {
    let answer = "200 OK\n\n{\"client_id\": \"new\", \"client_secret\": \"hidden\", \
         \"client_secret_expires_at\": 77, \"client_id_issued_at\": \"odd\", \
         \"registration_access_token\": \"token\", \"registration_client_uri\": \"https://as.example/r/1\"}";
    let (client, _) = registered(&[answer], json!({}), &wish()).await;
    let client = client.unwrap();
    assert_eq!(client.secret.unwrap().expose(), "hidden");
    assert_eq!(client.secret_expires_at, Some(77));
    assert_eq!(client.registration_access_token.unwrap().expose(), "token");
    assert_eq!(
        client.registration_uri.as_deref(),
        Some("https://as.example/r/1")
    );
    let forever = answer.replace("77", "0");
    let (client, _) = registered(&[&forever], json!({}), &wish()).await;
    assert_eq!(client.unwrap().secret_expires_at, None);
}

#[tokio::test]
async fn a_callback_by_number_that_is_refused_is_tried_by_name_once() {
    let refusals = [
        r#"{"error": "invalid_redirect_uri"}"#,
        r#"{"error": "invalid_client_metadata", "error_description": "Bad redirect_uris"}"#,
    ];
    for refusal in refusals {
        let refusal = format!("400 Bad Request\n\n{refusal}");
        let (client, bodies) = registered(&[&refusal, CREATED], json!({}), &wish()).await;
        assert_eq!(
            client.unwrap().redirect_uris,
            ["http://localhost:7000/callback"]
        );
        assert_eq!(
            bodies[1]["redirect_uris"][0],
            "http://localhost:7000/callback"
        );

        let (client, bodies) = registered(&[&refusal], json!({}), &wish()).await;
        let error = client.unwrap_err();
        assert!(
            matches!(error, RegistrationError::RedirectRefused { .. }),
            "{error:?}"
        );
        assert!(
            error.to_string().contains("http://localhost:7000/callback"),
            "{error}"
        );
        assert_eq!(bodies.len(), 2);
    }
    let elsewhere = RegistrationWish {
        redirect_uri: "https://relay.example/callback".to_owned(),
        ..wish()
    };
    let refusal = format!("400 Bad Request\n\n{}", refusals[0]);
    let (client, bodies) = registered(&[&refusal], json!({}), &elsewhere).await;
    assert!(client.is_err());
    assert_eq!(bodies.len(), 1);
}

#[tokio::test]
async fn refusals_are_explained() {
    let cases = [
        (
            "400 Bad Request\n\n{\"error\": \"invalid_client_metadata\", \"error_description\": \"no\\u001b scope\"}",
            "was refused (HTTP 400): invalid_client_metadata (no scope)",
            false,
            false,
        ),
        (
            "403 Forbidden\n\n<html>",
            "does not let everybody register",
            false,
            true,
        ),
        (
            "401 Unauthorized\n\n{\"error\": \"invalid_token\"}",
            "HTTP 401: invalid_token",
            false,
            true,
        ),
        ("404 Not Found", "was refused (HTTP 404)", false, false),
        ("503 Unavailable", "cannot register now", true, false),
        ("429 Slow Down", "cannot register now", true, false),
        (
            "201 Created\n\n{\"client_secret\": \"hidden\"}",
            "it has no `client_id`",
            false,
            false,
        ),
        (
            "201 Created\n\n{\"client_id\": \"\"}",
            "its `client_id` is empty",
            false,
            false,
        ),
        (
            "201 Created\n\n{\"client_id\": \"a\", \"client_secret\": \"hidden\", \"token_endpoint_auth_method\": \"tls_client_auth\"}",
            "by tls_client_auth",
            false,
            true,
        ),
    ];
    for (answer, expected, temporary, needs_registration) in cases {
        let (client, _) = registered(&[answer], json!({}), &wish()).await;
        let error = client.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        assert_eq!(error.is_temporary(), temporary, "{text}");
        assert_eq!(error.needs_registration(), needs_registration, "{text}");
        assert!(!format!("{error:?}").contains("hidden"), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_accepts_only_keys_is_not_asked() {
    let metadata = json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]});
    let (client, bodies) = registered(&[CREATED], metadata, &wish()).await;
    let error = client.unwrap_err().to_string();
    assert!(error.contains("by private_key_jwt"), "{error}");
    assert_eq!(bodies, Vec::<Value>::new());
}

#[tokio::test]
async fn a_registration_that_was_only_assumed_may_be_missing() {
    let responder = Responder::start(&[]).await;
    let server = AuthorizationServer::assumed(&responder.url("/mcp")).unwrap();
    let http = http_for(&responder.url("/"));
    let error = register(&http, &server, &wish(), None, 0)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistrationError::NotOffered { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_registration_is_given_back_where_that_is_possible() {
    for (answer, expected) in [
        ("204 No Content", Some(true)),
        ("401 Gone", Some(false)),
        ("500 No", None),
    ] {
        let responder = Responder::start(&[("DELETE /r/1", answer)]).await;
        let client = Client {
            registration_access_token: Some(Secret::new("token")),
            registration_uri: Some(responder.url("/r/1").into()),
            ..dynamic_client()
        };
        let given_back = unregister(&http_for(&responder.url("/")), &client).await;
        assert_eq!(given_back.ok(), expected, "{answer}");
        let requests = responder.requests();
        assert!(
            requests[0].contains("authorization: Bearer token\r\n"),
            "{requests:?}"
        );
    }
    let nowhere: Url = "http://127.0.0.1:1/".parse().unwrap();
    assert!(
        !unregister(&http_for(&nowhere), &dynamic_client())
            .await
            .unwrap()
    );
}
