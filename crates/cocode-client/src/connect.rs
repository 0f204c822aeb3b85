//! Makes a session: which era, which transport, and what to try next when one does not fit.

use std::sync::Arc;
use std::time::Duration;

use cocode_wire::{Closed, HttpTarget, LinkError, OpenError, Target};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::error::{ConnectError, RequestError, Retry};
use crate::handshake::{Probe, answer_in, discover, failed, initialize, is_modern_error};
use crate::options::SessionOptions;
use crate::serve::serve;
use crate::server::{ServerFacts, Step};
use cocode_core::{Era, Protocol, Revision};

/// A connection on which both sides know each other.
pub(crate) struct Established {
    pub(crate) connection: Arc<Connection>,
    /// Answers the server from the first moment: it may ping before the handshake is over.
    pub(crate) serving: JoinSet<()>,
    pub(crate) facts: ServerFacts,
}

/// The whole ladder, under one deadline.
pub(crate) async fn establish(
    target: &Target,
    options: &SessionOptions,
) -> Result<Established, ConnectError> {
    let mut climb = Climb::new(target, options);
    let limit = options.timeouts.connect;
    let outcome = tokio::time::timeout(limit, climb.up()).await;
    let mut facts = match outcome {
        Ok(Ok(facts)) => facts,
        // A request that may take as long as everything can be first to notice that time is up.
        Err(_)
        | Ok(Err(ConnectError::Handshake {
            error: RequestError::Timeout { .. },
            ..
        })) => {
            let (stderr, noise) = (climb.stderr(), climb.noise());
            return Err(ConnectError::Timeout {
                after: limit,
                step: climb.doing,
                stderr,
                noise,
            });
        }
        Ok(Err(error)) => return Err(error),
    };
    facts.steps = climb.steps;
    facts.transport = climb.transport;
    match climb.current {
        Some((connection, serving)) => Ok(Established {
            connection,
            serving,
            facts,
        }),
        None => Err(OpenError::Target("no connection was made".into()).into()),
    }
}

struct Climb<'a> {
    target: &'a Target,
    options: &'a SessionOptions,
    current: Option<(Arc<Connection>, JoinSet<()>)>,
    transport: &'static str,
    doing: &'static str,
    steps: Vec<Step>,
    begun: Instant,
}

impl<'a> Climb<'a> {
    fn new(target: &'a Target, options: &'a SessionOptions) -> Self {
        let transport = transport_name(target);
        Self {
            target,
            options,
            current: None,
            transport,
            doing: "starting",
            steps: Vec::new(),
            begun: Instant::now(),
        }
    }

    async fn up(&mut self) -> Result<ServerFacts, ConnectError> {
        self.open().await?;
        // HTTP+SSE and everything before it is of the older era by definition.
        let known = match self.target {
            Target::LegacySse(_) => Some(Era::Legacy),
            _ => self.options.known_era,
        };
        match (self.options.protocol, known) {
            (Protocol::Exact(revision), _) if revision.era() == Era::Legacy => {
                self.legacy(revision, &[revision]).await
            }
            (Protocol::Exact(_) | Protocol::Modern, _) => self.modern_only().await,
            (Protocol::Legacy, _) => self.any_legacy().await,
            (Protocol::Auto, Some(Era::Legacy)) => self.legacy_again().await,
            (Protocol::Auto, known) => self.either(known.is_some()).await,
        }
    }

    /// Uses a server that is known to need a handshake. The other era follows a refusal, or the
    /// second end of the connection.
    async fn legacy_again(&mut self) -> Result<ServerFacts, ConnectError> {
        let mut outcome = self.any_legacy().await;
        if let Err(ConnectError::Handshake { error, .. }) = &outcome
            && let RequestError::Closed { .. } = error
        {
            if exited_unasked(error) || !self.can_reopen() {
                return outcome;
            }
            self.open().await?;
            outcome = self.any_legacy().await;
        }
        match outcome {
            Err(refusal @ ConnectError::Handshake { .. }) => self.modern_after_all(refusal).await,
            other => other,
        }
    }

    /// The memory of a server may be wrong: a stateless one refuses the handshake, each in its way.
    async fn modern_after_all(
        &mut self,
        refusal: ConnectError,
    ) -> Result<ServerFacts, ConnectError> {
        match &refusal {
            ConnectError::Handshake { error, .. } if settles_nothing(error) => {}
            _ => return Err(refusal),
        }
        let answered = matches!(
            refusal,
            ConnectError::Handshake {
                error: RequestError::Rpc { .. },
                ..
            }
        );
        // Anything but an answer may have cost the connection, or led to another transport.
        if (!answered || self.current.is_none()) && self.open().await.is_err() {
            return Err(refusal);
        }
        match self.probe(self.options.timeouts.probe).await? {
            Probe::Modern(facts) => Ok(facts),
            _ => Err(refusal),
        }
    }

    /// Stateless if the server is, otherwise with a handshake. A server that is known to be
    /// stateless has the whole time to answer the probe, and is not taken for another because it is
    /// slow or busy.
    async fn either(&mut self, is_known: bool) -> Result<ServerFacts, ConnectError> {
        let timeouts = self.options.timeouts;
        let patience = if is_known {
            timeouts.connect
        } else {
            // The handshake that may follow needs its part of the time.
            let left = timeouts.connect.saturating_sub(self.begun.elapsed());
            timeouts.probe.min(left / 2)
        };
        let mut probe = self.probe(patience).await?;
        let ended = match &probe {
            Probe::Gone(why) => !exited_unasked(why),
            Probe::Silent(why) => matches!(why, RequestError::Link { .. }),
            _ => false,
        };
        if is_known && ended && self.can_reopen() {
            self.open().await?;
            probe = self.probe(patience).await?;
        }
        match probe {
            Probe::Modern(facts) => Ok(facts),
            Probe::Failed(error) => Err(self.failed(error)),
            Probe::Silent(error) if is_known => Err(self.failed(error)),
            Probe::Legacy(error) if is_known && error.retry() != Retry::Pointless => {
                Err(self.failed(error))
            }
            Probe::Legacy(why) => {
                tracing::debug!(error = %why, "not a stateless server");
                self.any_legacy().await
            }
            Probe::Gone(why) => {
                tracing::debug!(error = %why, "the server ended when asked for its era");
                if exited_unasked(&why) || !self.can_reopen() {
                    return Err(self.failed(why));
                }
                self.open().await?;
                self.any_legacy().await
            }
            Probe::Silent(_) => match self.any_legacy().await {
                // It may only have been slow to start, or behind a pooled connection that had ended.
                // Then it can answer now.
                Err(
                    refusal @ ConnectError::Handshake {
                        error: RequestError::Rpc { .. },
                        ..
                    },
                ) => self.modern_after_all(refusal).await,
                other => other,
            },
        }
    }

    async fn modern_only(&mut self) -> Result<ServerFacts, ConnectError> {
        match self.probe(self.options.timeouts.connect).await? {
            Probe::Modern(facts) => Ok(facts),
            Probe::Legacy(error @ (RequestError::Rpc { .. } | RequestError::Unexpected { .. })) => {
                tracing::debug!(%error, "not a stateless server");
                let offered = "no stateless revision";
                Err(ConnectError::version(offered, &[Revision::LATEST_MODERN]))
            }
            Probe::Legacy(error)
            | Probe::Silent(error)
            | Probe::Gone(error)
            | Probe::Failed(error) => Err(self.failed(error)),
        }
    }

    async fn any_legacy(&mut self) -> Result<ServerFacts, ConnectError> {
        let accept = Revision::ALL
            .into_iter()
            .filter(|revision| revision.era() == Era::Legacy);
        let accept: Vec<_> = accept.collect();
        self.legacy(Revision::LATEST_LEGACY, &accept).await
    }

    async fn legacy(
        &mut self,
        offer: Revision,
        accept: &[Revision],
    ) -> Result<ServerFacts, ConnectError> {
        let first = self.handshake(offer, accept).await;
        let Err(ConnectError::Handshake {
            error,
            stderr,
            noise,
        }) = first
        else {
            return first;
        };
        let instead = self.sse_instead(&error);
        let error = error.with_its_answer();
        let Some(http) = instead else {
            return Err(ConnectError::Handshake {
                error,
                stderr,
                noise,
            });
        };
        let target = Target::LegacySse(http);
        match self.open_target(&target).await {
            Ok(()) => {}
            // It is one, for those who may use it.
            Err(
                wants @ ConnectError::Open(OpenError::Link(
                    LinkError::AuthRequired(_) | LinkError::Credentials(_),
                )),
            ) => {
                return Err(wants);
            }
            Err(also) => {
                tracing::debug!(error = %also, "not an HTTP+SSE server either");
                return Err(ConnectError::Handshake {
                    error,
                    stderr,
                    noise,
                });
            }
        }
        self.handshake(offer, accept).await
    }

    /// The target to try after `error`, if the ladder of the specification has another rung.
    fn sse_instead(&self, error: &RequestError) -> Option<HttpTarget> {
        let Target::Http(http) = self.target else {
            return None;
        };
        let RequestError::Link {
            error: LinkError::Status { status, .. },
            ..
        } = error
        else {
            return None;
        };
        let modern = answer_in(error).is_some_and(is_modern_error);
        let fits = self.options.sse_fallback && matches!(status, 400 | 404 | 405) && !modern;
        fits.then(|| http.clone())
    }

    async fn handshake(
        &mut self,
        offer: Revision,
        accept: &[Revision],
    ) -> Result<ServerFacts, ConnectError> {
        self.doing = "initializing";
        let began = Instant::now();
        let facts = match &self.current {
            Some((connection, _)) => initialize(connection, self.options, offer, accept).await,
            None => Err(OpenError::Target("not connected".into()).into()),
        };
        self.steps.push(Step {
            name: "initialize",
            took: began.elapsed(),
        });
        facts
    }

    async fn probe(&mut self, patience: Duration) -> Result<Probe, ConnectError> {
        self.doing = "asking for its era";
        let began = Instant::now();
        let Some((connection, _)) = &self.current else {
            return Err(OpenError::Target("not connected".into()).into());
        };
        let probe = discover(connection, self.options, patience).await;
        self.steps.push(Step {
            name: "discover",
            took: began.elapsed(),
        });
        Ok(probe)
    }

    async fn open(&mut self) -> Result<(), ConnectError> {
        self.open_target(self.target).await
    }

    async fn open_target(&mut self, target: &Target) -> Result<(), ConnectError> {
        self.doing = "connecting";
        self.transport = transport_name(target);
        let began = Instant::now();
        // The old connection ends before the new one begins.
        if let Some((old, _)) = self.current.take() {
            old.link.close().await;
        }
        let handler = Arc::clone(&self.options.handler);
        let (connection, incoming) = Connection::open(target, Arc::clone(&handler)).await?;
        let connection = Arc::new(connection);
        let patience = self.options.timeouts.answer;
        let mut serving = JoinSet::new();
        serving.spawn(serve(Arc::clone(&connection), incoming, handler, patience));
        self.current = Some((connection, serving));
        let name = if matches!(target, Target::Stdio(_)) {
            "start"
        } else {
            "connect"
        };
        self.steps.push(Step {
            name,
            took: began.elapsed(),
        });
        Ok(())
    }

    fn can_reopen(&self) -> bool {
        !matches!(self.target, Target::Memory(_))
    }

    fn failed(&self, error: RequestError) -> ConnectError {
        match &self.current {
            Some((connection, _)) => failed(connection, error),
            None => ConnectError::Handshake {
                error,
                stderr: Vec::new(),
                noise: Vec::new(),
            },
        }
    }

    fn noise(&self) -> Vec<String> {
        let noise = self
            .current
            .as_ref()
            .map(|(connection, _)| connection.mux.noise());
        noise.unwrap_or_default()
    }

    fn stderr(&self) -> Vec<String> {
        let lines = self
            .current
            .as_ref()
            .map(|(connection, _)| connection.link.stderr_lines());
        lines.unwrap_or_default()
    }
}

/// Whether the server exited before it read anything: it does so in either era.
fn exited_unasked(error: &RequestError) -> bool {
    matches!(
        error,
        RequestError::Closed {
            reason: Closed::Exited {
                has_unread: true,
                ..
            },
            ..
        }
    )
}

/// Whether the other era may still work after this failure of a handshake: the server has refused
/// it, or ends whenever it is asked.
fn settles_nothing(error: &RequestError) -> bool {
    match error {
        RequestError::Closed { .. } => true,
        RequestError::Link {
            error:
                LinkError::AuthRequired(_) | LinkError::Credentials(_) | LinkError::Redirect { .. },
            ..
        } => false,
        error => error.retry() == Retry::Pointless,
    }
}

fn transport_name(target: &Target) -> &'static str {
    match target {
        Target::Stdio(_) => "stdio",
        Target::Http(_) => "http",
        Target::LegacySse(_) => "sse",
        Target::WebSocket(_) => "ws",
        Target::Unix(_) => "unix",
        Target::Memory(_) => "memory",
        _ => "unknown",
    }
}
