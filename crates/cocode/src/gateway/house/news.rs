//! Tells what happens: servers that are another than they were, changes of the files and what waits for
//! approval because of them, lines of logs, tokens. Nothing is looked at again and again: each of them
//! says when there is something, but for tokens that another process makes.

use std::collections::BTreeMap;
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
use super::trust::{Unapproved, unapproved};
use crate::gateway::servers::{Present, happenings};
use crate::workspace;

/// Knows what was told last.
struct Teller {
    interior: Arc<Interior>,
    present: Arc<Present>,
    /// Servers as they were told, without what changes all the time.
    told: BTreeMap<String, Server>,
    /// What is not approved, and why.
    unapproved: BTreeMap<Unapproved, TrustState>,
    happenings: SelectAll<BoxStream<'static, ServerName>>,
}

/// Tells what happens, until there is no gateway any more.
pub(super) async fn tell(interior: Arc<Interior>) {
    tokio::select! {
        () = tell_all(Arc::clone(&interior)) => {}
        () = interior.tell_of_added_tokens() => {}
    }
}

async fn tell_all(interior: Arc<Interior>) {
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
            unapproved: unapproved(&present.config),
            happenings: happenings(&interior.view, &present.specs),
            present,
            interior,
        };
        teller.hang_problems();
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
        // Before it is told that there is something to read.
        self.hang_problems();
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
            self.interior.watch.calls.forget_server(&name);
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
        let now = unapproved(config);
        let before = std::mem::replace(&mut self.unapproved, now);
        for (entry, state) in &self.unapproved {
            if before.get(entry) != Some(state) {
                self.publish(&trust_news(entry, *state));
            }
        }
        for was in before.keys() {
            // One that says something else now waits with that.
            let goes_on = self.unapproved.keys().any(|other| other.name == was.name);
            if !goes_on && is_approved(config, was) {
                self.publish(&trust_news(was, TrustState::Approved));
            }
        }
    }

    /// Says what is wrong in the files to whoever comes later.
    fn hang_problems(&self) {
        let problems = self.present.config.all_problems().into_iter();
        let problems = problems.map(workspace::told).collect();
        self.interior.bulletin.set_problems(problems);
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
            Revoked::One(token) => self
                .interior
                .tell_of_token(&token.name, TokenChange::Revoked),
            // Nobody can say which; whoever looks at tokens reads them anew.
            Revoked::Many => tracing::debug!("more tokens were revoked than can be told"),
        }
    }
}

/// Whether something that was not approved is now. It may as well be gone.
fn is_approved(config: &Config, was: &Unapproved) -> bool {
    if let Some(path) = &was.settings {
        return path.is_file();
    }
    let server = config.servers.get(&was.name);
    server.is_some_and(|server| server.winner.trust == Trust::Approved)
}

fn trust_news(entry: &Unapproved, state: TrustState) -> News {
    let name = entry.name.clone();
    News::Trust(TrustNews { name, state })
}

/// A server without what changes all the time.
fn lasting(server: Server) -> Server {
    Server {
        uptime_seconds: None,
        ..server
    }
}
