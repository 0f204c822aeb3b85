//! Headers that a command of the user prints: asked for once, and again when a server refuses them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_wire::{
    Credentials, CredentialsError, CredentialsErrorKind, CredentialsWork, Refusal, RequestLine,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::command::{self, CommandSettings};
use crate::reference::Reference;
use crate::turn::Turn;

/// The headers of one server, by its `headers_helper`.
#[derive(Clone)]
pub struct HeadersHelper(Arc<Inner>);

struct Inner {
    server: String,
    line: String,
    commands: CommandSettings,
    /// What it printed last.
    printed: Mutex<Option<HeaderMap>>,
    /// It runs once for all who need it.
    turn: Turn,
}

impl HeadersHelper {
    /// Runs nothing yet. `server` is how messages call the server.
    pub fn new(server: String, line: String, commands: CommandSettings) -> Self {
        Self(Arc::new(Inner {
            server,
            line,
            commands,
            printed: Mutex::default(),
            turn: Turn::new(),
        }))
    }

    async fn current(&self) -> Result<HeaderMap, CredentialsError> {
        let _turn = self.0.turn.wait().await;
        let printed = self.printed().clone();
        match printed {
            Some(headers) => Ok(headers),
            None => self.run().await,
        }
    }

    /// Whether there are other headers than those that were refused.
    async fn renewed(&self, refused: &HeaderMap) -> Result<bool, CredentialsError> {
        let _turn = self.0.turn.wait().await;
        let is_old = self.printed().as_ref().is_some_and(|now| now != refused);
        if is_old {
            return Ok(true);
        }
        // Whatever comes of it: these were refused.
        *self.printed() = None;
        Ok(self.run().await? != *refused)
    }

    fn printed(&self) -> MutexGuard<'_, Option<HeaderMap>> {
        let printed = self.0.printed.lock();
        printed.unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self) -> Result<HeaderMap, CredentialsError> {
        let Inner {
            server,
            line,
            commands,
            printed: _,
            turn: _,
        } = &*self.0;
        let failed = |message: &str| {
            let shown = Reference::Command(line.clone());
            let message = format!("server `{server}`: `headers_helper` ({shown}) {message}");
            CredentialsError::new(CredentialsErrorKind::Temporary, message)
        };
        let text = command::run(line, commands)
            .await
            .map_err(|error| failed("gave no headers").because(&error))?;
        let printed: BTreeMap<String, String> =
            serde_json::from_str(text.expose()).map_err(|_never_shown| {
                failed("printed no JSON object of texts")
                    .hint(r#"it has to print one object, as in {"Authorization": "Bearer …"}"#)
            })?;
        let mut headers = HeaderMap::new();
        for (name, value) in printed {
            let made = HeaderName::from_bytes(name.as_bytes())
                .ok()
                .zip(HeaderValue::from_str(value.trim()).ok());
            let Some((name, mut value)) = made else {
                return Err(failed("printed characters that no header can have"));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        *self.printed() = Some(headers.clone());
        Ok(headers)
    }
}

impl Credentials for HeadersHelper {
    fn headers<'a>(&'a self, _request: RequestLine<'a>) -> CredentialsWork<'a, HeaderMap> {
        Box::pin(self.current())
    }

    fn refused<'a>(&'a self, refusal: Refusal<'a>) -> CredentialsWork<'a, bool> {
        Box::pin(async move {
            // New headers that are refused as well are no matter of their age.
            if refusal.before > 0 {
                return Ok(false);
            }
            self.renewed(refusal.sent).await
        })
    }
}

impl fmt::Debug for HeadersHelper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HeadersHelper")
            .field("server", &self.0.server)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use cocode_wire::{Challenge, Credentials as _, Method, Refusal, RequestLine};
    use http::HeaderMap;
    use url::Url;

    use super::HeadersHelper;
    use crate::command::CommandSettings;

    struct Asked {
        url: Url,
        helper: HeadersHelper,
    }

    impl Asked {
        fn new(line: &str) -> Self {
            let path = ("PATH".into(), "/usr/bin:/bin".into());
            let commands = CommandSettings::new(vec![path]);
            Self {
                url: "https://example.com/mcp".parse().unwrap(),
                helper: HeadersHelper::new("s".into(), line.into(), commands),
            }
        }

        fn request(&self) -> RequestLine<'_> {
            RequestLine {
                method: &Method::POST,
                url: &self.url,
            }
        }

        async fn headers(&self) -> Result<HeaderMap, cocode_wire::CredentialsError> {
            self.helper.headers(self.request()).await
        }

        async fn refused(&self, sent: &HeaderMap, before: u32) -> bool {
            let challenge = Challenge {
                status: 401,
                www_authenticate: Vec::new(),
                auth_server: None,
            };
            let refusal = Refusal {
                request: self.request(),
                sent,
                challenge: &challenge,
                headers: &HeaderMap::new(),
                before,
            };
            self.helper.refused(refusal).await.unwrap()
        }
    }

    /// A command that counts how often it was run, and prints the count.
    fn counting(directory: &tempfile::TempDir) -> String {
        let file = directory.path().join("count");
        let file = file.display();
        format!(r#"echo x >> "{file}"; n=$(wc -l < "{file}"); echo "{{\"X-Run\": \"$n\"}}""#)
    }

    #[tokio::test]
    async fn a_command_runs_once_and_again_for_those_who_were_refused() {
        let directory = tempfile::tempdir().unwrap();
        let asked = Asked::new(&counting(&directory));
        let first = asked.headers().await.unwrap();
        assert_eq!(first["x-run"], "1");
        assert_eq!(asked.headers().await.unwrap()["x-run"], "1");
        assert!(asked.refused(&first, 0).await);
        let second = asked.headers().await.unwrap();
        assert_eq!(second["x-run"], "2");
        // Another request that was sent with the old headers needs no further run.
        assert!(asked.refused(&first, 0).await);
        assert_eq!(asked.headers().await.unwrap()["x-run"], "2");
        assert!(!asked.refused(&second, 1).await);
    }

    #[tokio::test]
    async fn headers_that_stay_the_same_are_not_sent_again() {
        let asked = Asked::new(r#"echo '{"X-Key": "same"}'"#);
        let sent = asked.headers().await.unwrap();
        assert!(!asked.refused(&sent, 0).await);
    }

    #[tokio::test]
    async fn what_is_printed_is_never_shown() {
        for line in [
            "echo hush",
            r#"echo '{"X Key": "hush"}'"#,
            "echo hush; exit 3",
        ] {
            let asked = Asked::new(line);
            let error = asked.headers().await.unwrap_err();
            let told = format!("{error} {error:?} {:?}", asked.helper);
            assert!(!told.contains("hush"), "{told}");
            assert!(told.contains("server `s`"), "{told}");
        }
    }
}
