//! What to do at servers where no program can register itself: which token to make where, and how to
//! name it to cocode. Pure.

use url::Url;

use super::metadata::AuthorizationServer;

/// What a user can do instead of signing in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Whose server it is, without what may be secret.
    host: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Tokens that users make themselves.
    Service(Service),
    /// A client that somebody registers, or a token.
    Client,
    /// Nothing is known but that credentials are wanted.
    Unknown,
}

/// A service of which we know that it takes tokens which users make themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Service {
    name: &'static str,
    token: &'static str,
    /// Where they are made.
    place: String,
    variable: &'static str,
}

/// The advice for a server by its address, and the authorization server that it names, if it names
/// one.
pub fn advice(server: &Url, authorization: Option<&AuthorizationServer>) -> Advice {
    let host = server.host_str().unwrap_or_default();
    // What was only assumed says nothing.
    let issuer = authorization.filter(|authorization| !authorization.assumed);
    let issuer_host = issuer
        .and_then(|authorization| Url::parse(&authorization.issuer).ok())
        .and_then(|url| url.host_str().map(str::to_owned));
    let kind = match (known(host, issuer_host.as_deref()), issuer) {
        (Some(service), _) => Kind::Service(service),
        (None, Some(_)) => Kind::Client,
        (None, None) => Kind::Unknown,
    };
    Advice {
        host: host.to_owned(),
        kind,
    }
}

impl Advice {
    /// What the server wants, in one sentence.
    pub fn summary(&self) -> String {
        let host = &self.host;
        match &self.kind {
            Kind::Service(Service { name, token, .. }) => {
                format!("{name} lets no program sign in by itself, but takes {token}")
            }
            Kind::Client => format!(
                "{host} lets no program register itself: it wants a client that somebody \
                 registered, or a token"
            ),
            Kind::Unknown => format!("{host} wants credentials and does not say how to get them"),
        }
    }

    /// What to do, in order, for the server of this name in the configuration.
    pub fn hints(&self, name: &str) -> Vec<String> {
        let host = &self.host;
        let variable = match &self.kind {
            Kind::Service(service) => service.variable.to_owned(),
            Kind::Client | Kind::Unknown => variable_for(name),
        };
        let mut hints = match &self.kind {
            Kind::Service(Service { token, place, .. }) => {
                vec![format!(
                    "make {token} at {place} with the rights that the tools need"
                )]
            }
            Kind::Client => vec![
                format!(
                    "either register a client with those who run {host}, and name it in `client_id` \
                     of the `oauth` table of the server `{name}`, or add the server with \
                     `--client-id ID`"
                ),
                "or get a token from them".to_owned(),
            ],
            Kind::Unknown => vec![format!("get a token from those who run {host}")],
        };
        hints.push(format!("put it into the environment variable {variable}"));
        hints.push(format!(
            "set `bearer_token_env_var = \"{variable}\"` for the server `{name}`, or add it with \
             `--bearer-token-env-var {variable}`"
        ));
        hints
    }
}

/// The service of a host. An authorization server says more than the host: others offer their own
/// servers with it.
fn known(host: &str, issuer_host: Option<&str>) -> Option<Service> {
    let github = |web: &str| Service {
        name: "GitHub",
        token: "a personal access token",
        place: format!("https://{web}/settings/personal-access-tokens/new"),
        variable: "GITHUB_PERSONAL_ACCESS_TOKEN",
    };
    // Enterprises have a name of their own, in front of which the parts of the service stand.
    let enterprise = |host: &str| {
        let name = host.strip_suffix(".ghe.com")?.rsplit('.').next()?;
        Some(format!("{name}.ghe.com"))
    };
    if let Some(web) = issuer_host
        .and_then(enterprise)
        .or_else(|| enterprise(host))
    {
        return Some(github(&web));
    }
    if issuer_host == Some("github.com") {
        return Some(github("github.com"));
    }
    match host {
        "api.githubcopilot.com" => Some(github("github.com")),
        "huggingface.co" | "hf.co" => Some(Service {
            name: "Hugging Face",
            token: "an access token",
            place: "https://huggingface.co/settings/tokens".to_owned(),
            variable: "HF_TOKEN",
        }),
        "mcp.stripe.com" => Some(Service {
            name: "Stripe",
            token: "a restricted API key",
            place: "https://dashboard.stripe.com/apikeys".to_owned(),
            variable: "STRIPE_API_KEY",
        }),
        _ => None,
    }
}

/// A name for a variable that can be typed in every shell.
fn variable_for(name: &str) -> String {
    let letters = name.chars().map(|character| match character {
        _ if character.is_ascii_alphanumeric() => character.to_ascii_uppercase(),
        _ => '_',
    });
    let name: String = letters.collect();
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => format!("{name}_TOKEN"),
        _ => format!("MCP_{name}_TOKEN"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Advice, advice};
    use crate::oauth::AuthorizationServer;

    fn for_server(server: &str, issuer: Option<&str>) -> Advice {
        let issuer = issuer.map(|issuer| -> AuthorizationServer {
            serde_json::from_value(serde_json::json!({ "issuer": issuer })).unwrap()
        });
        advice(&server.parse().unwrap(), issuer.as_ref())
    }

    #[test]
    fn servers_that_want_tokens_are_recognized() {
        let github = "https://github.com/settings/personal-access-tokens/new";
        let octo = "https://octo.ghe.com/settings/personal-access-tokens/new";
        let (copilot, enterprise) = (
            "https://api.githubcopilot.com/mcp/",
            "https://copilot-api.octo.ghe.com/mcp",
        );
        let issuer = Some("https://github.com/login/oauth");
        let cases = [
            (copilot, None, github),
            (copilot, issuer, github),
            ("https://mcp.example/", issuer, github),
            (enterprise, Some("https://octo.ghe.com/login/oauth"), octo),
            (enterprise, None, octo),
            (
                "https://huggingface.co/mcp",
                None,
                "https://huggingface.co/settings/tokens",
            ),
            (
                "https://mcp.stripe.com",
                None,
                "https://dashboard.stripe.com/apikeys",
            ),
        ];
        for (server, issuer, place) in cases {
            let hints = for_server(server, issuer).hints("it");
            assert!(hints[0].contains(place), "{hints:?}");
        }
        let hints = for_server(copilot, None).hints("hub");
        assert_eq!(
            hints[2],
            "set `bearer_token_env_var = \"GITHUB_PERSONAL_ACCESS_TOKEN\"` for the server `hub`, or \
             add it with `--bearer-token-env-var GITHUB_PERSONAL_ACCESS_TOKEN`"
        );
    }

    #[test]
    fn hosts_that_only_look_alike_are_not_known() {
        for server in [
            "https://api.githubcopilot.com.example/",
            "https://ghe.com/",
            "https://aghe.com/",
        ] {
            let hints = for_server(server, None).hints("it").join(" ");
            assert!(hints.contains("IT_TOKEN"), "{hints}");
        }
    }

    #[test]
    fn unknown_servers_get_a_client_or_a_token() {
        let server = "https://mcp.example/mcp?key=hidden";
        let named = for_server(server, Some("https://as.example"));
        let text = format!("{} {}", named.summary(), named.hints("my-server").join(" "));
        assert!(text.contains("`--client-id ID`"), "{text}");
        assert!(
            text.contains("--bearer-token-env-var MY_SERVER_TOKEN"),
            "{text}"
        );
        assert!(!format!("{named:?} {text}").contains("hidden"), "{text}");
        let unnamed = for_server(server, None);
        let hints = unnamed.hints("7").join(" ");
        assert!(!hints.contains("--client-id"), "{hints}");
        assert!(hints.contains("MCP_7_TOKEN"), "{hints}");
        // What was only assumed names nobody.
        let url = server.parse().unwrap();
        let assumed = AuthorizationServer::assumed(&url).unwrap();
        assert_eq!(advice(&url, Some(&assumed)), unnamed);
    }
}
