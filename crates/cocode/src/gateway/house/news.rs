//! Tells what happens: servers that are another than they were, changes of the files and what waits for
//! approval because of them, lines of logs, tokens that were revoked. Nothing is looked at again and
//! again: each of them says when there is something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cocode_access::{Revocations, Revoked, TokenKeeper};
use cocode_admin::News;
use cocode_admin::model::{
    ConfigNews, LogLine, LogNews, Server, TokenChange, TrustNews, TrustState,
};
use cocode_client::LoggedLine;
use cocode_config::{Config, Trust};
use cocode_core::ServerName;
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, SelectAll};

use super::interior::Interior;
use super::logs::shown;
use super::servers::names;
use super::trust::{Waiting, waiting};
use crate::gateway::servers::{Present, happenings};

/// Knows what was told last.
struct Teller {
    interior: Arc<Interior>,
    present: Arc<Present>,
    /// Servers as they were told, without what changes all the time.
    told: BTreeMap<String, Server>,
    pending: BTreeSet<Waiting>,
    happenings: SelectAll<BoxStream<'static, ServerName>>,
}

/// Tells what happens, until there is no gateway any more.
pub(super) async fn tell(interior: Arc<Interior>) {
    let mut changes = interior.present.clone();
    let mut lines = interior.logs.listen();
    let mut revocations = interior
        .tokens
        .as_ref()
        .map(|tokens| TokenKeeper::revocations(tokens));
    let present = Arc::clone(&changes.borrow_and_update());
    let mut teller = Teller::new(interior, present);
    loop {
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
                let present = Arc::clone(&changes.borrow_and_update());
                teller.configured(&present);
            }
            Some(name) = teller.happenings.next() => teller.happened(name.as_str()),
            Some(line) = lines.next() => teller.logged(&line),
            Some(revoked) = next_revoked(revocations.as_mut()) => teller.revoked(&revoked),
        }
    }
}

async fn next_revoked(revocations: Option<&mut Revocations>) -> Option<Revoked> {
    match revocations {
        Some(revocations) => revocations.next().await,
        None => None,
    }
}

impl Teller {
    /// Whoever listens has read how everything is; only what is different from here on is news.
    fn new(interior: Arc<Interior>, present: Arc<Present>) -> Self {
        let mut teller = Self {
            told: BTreeMap::new(),
            pending: waiting(&present.config),
            happenings: happenings(&interior.view, &present.specs),
            present,
            interior,
        };
        for name in names(&teller.present) {
            if let Some(server) = teller.interior.shown(&teller.present, &name) {
                teller.told.insert(name, lasting(server));
            }
        }
        teller
    }

    fn publish(&self, news: &News) {
        self.interior.bulletin.publish(news);
    }

    /// Another configuration is in use.
    fn configured(&mut self, present: &Arc<Present>) {
        self.happenings = happenings(&self.interior.view, &present.specs);
        self.present = Arc::clone(present);
        let news = &present.news;
        if !news.changes.is_empty() || !news.problems.is_empty() {
            self.publish(&News::Config(ConfigNews {
                changes: news.changes.clone(),
                problems: news.problems.clone(),
            }));
        }
        let names = names(present);
        let gone: Vec<String> = self
            .told
            .keys()
            .filter(|name| !names.contains(*name))
            .cloned()
            .collect();
        for name in gone {
            self.told.remove(&name);
            self.publish(&News::ServerRemoved(name));
        }
        for name in &names {
            self.happened(name);
        }
        self.trusted(&present.config);
    }

    /// A server may be another than it was told.
    fn happened(&mut self, name: &str) {
        let Some(mut server) = self.interior.shown(&self.present, name) else {
            return;
        };
        let lasting = lasting(server.clone());
        if self.told.get(name) != Some(&lasting) {
            self.told.insert(name.to_owned(), lasting);
            server.in_flight = self.interior.in_flight(name);
            self.publish(&News::Server(Box::new(server)));
        }
    }

    /// Something may wait for approval that did not, or not any more.
    fn trusted(&mut self, config: &Config) {
        let now = waiting(config);
        let before = std::mem::replace(&mut self.pending, now);
        for waiting in self.pending.difference(&before) {
            self.publish(&trust_news(waiting, TrustState::Pending));
        }
        for was in before.difference(&self.pending) {
            // One that says something else now waits with that.
            let waits_on = self.pending.iter().any(|other| other.name == was.name);
            if let Some(state) = settled(config, was).filter(|_| !waits_on) {
                self.publish(&trust_news(was, state));
            }
        }
    }

    fn logged(&self, line: &LoggedLine) {
        let Some(LogLine {
            at,
            stream,
            level,
            text,
        }) = shown(&line.line)
        else {
            return;
        };
        self.publish(&News::Log(LogNews {
            server: line.server.to_string(),
            at,
            stream,
            level,
            text,
        }));
    }

    fn revoked(&self, revoked: &Revoked) {
        match revoked {
            Revoked::One(name) => self.interior.tell_of_token(name, TokenChange::Revoked),
            // Nobody can say which; whoever looks at tokens reads them anew.
            Revoked::Many => tracing::debug!("more tokens were revoked than can be told"),
        }
    }
}

/// What became of something that waited; nothing if it is gone.
fn settled(config: &Config, was: &Waiting) -> Option<TrustState> {
    if was.is_settings {
        let mut settings = config.pending_settings.iter();
        let is_refused = settings.any(|file| file.name() == was.name);
        return Some(if is_refused {
            TrustState::Rejected
        } else {
            TrustState::Approved
        });
    }
    let server = config.servers.get(&was.name)?;
    match server.winner.trust {
        Trust::Approved => Some(TrustState::Approved),
        Trust::Refused => Some(TrustState::Rejected),
        Trust::New | Trust::Changed(_) => None,
    }
}

fn trust_news(waiting: &Waiting, state: TrustState) -> News {
    let name = waiting.name.clone();
    News::Trust(TrustNews { name, state })
}

/// A server without what changes all the time.
fn lasting(server: Server) -> Server {
    Server {
        uptime_seconds: None,
        ..server
    }
}
