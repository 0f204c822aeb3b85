//! An endpoint of a view: who comes there talks to its room.

use std::sync::{Arc, OnceLock, Weak};

use cocode_wire::serve::{Conversation, Endpoint, Sink};
use tokio::sync::watch;

use crate::downstream::Downstream;
use crate::oversight::Overseer;
use crate::party::Party;
use crate::room::Room;
use crate::searching::Announced;
use crate::view::Inner;

/// Where clients come in.
pub(crate) struct Place {
    room: Arc<dyn Room>,
    view: Weak<Inner>,
    /// Those whose requests stand alone, once there are such.
    stateless: OnceLock<Arc<Downstream>>,
    /// What is known of the models of its clients.
    announced: Announced,
    /// Whom they belong to.
    party: Arc<Party>,
    drained: watch::Receiver<bool>,
}

impl Place {
    pub(crate) fn new(room: Arc<dyn Room>, view: &Arc<Inner>) -> Arc<Self> {
        Arc::new(Self {
            stateless: OnceLock::new(),
            room,
            view: Arc::downgrade(view),
            announced: Announced::default(),
            party: Arc::clone(view.party()),
            drained: view.drained(),
        })
    }

    /// The same place, for clients of whose models this is known.
    pub(crate) fn announcing(&self, announced: Announced) -> Arc<Self> {
        Arc::new(Self {
            stateless: OnceLock::new(),
            room: Arc::clone(&self.room),
            view: Weak::clone(&self.view),
            announced,
            party: Arc::clone(&self.party),
            drained: self.drained.clone(),
        })
    }

    /// The same place, for clients who are watched over by somebody else.
    pub(crate) fn watched_by(&self, overseer: Arc<dyn Overseer>) -> Arc<Self> {
        Arc::new(Self {
            stateless: OnceLock::new(),
            room: Arc::clone(&self.room),
            view: Weak::clone(&self.view),
            announced: self.announced,
            party: Arc::new(self.party.watched_by(overseer)),
            drained: self.drained.clone(),
        })
    }

    fn client(&self, outlet: Option<Arc<dyn Sink>>) -> Arc<Downstream> {
        let (room, party) = (Arc::clone(&self.room), Arc::clone(&self.party));
        let drained = self.drained.clone();
        Downstream::new(room, outlet, self.announced, party, drained)
    }
}

impl Endpoint for Place {
    fn converse(&self, outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        let client = self.client(Some(outlet));
        if let Some(view) = self.view.upgrade() {
            view.remember(&client);
        }
        client
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        let stateless = self.stateless.get_or_init(|| self.client(None));
        Arc::clone(stateless) as Arc<dyn Conversation>
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Place").finish_non_exhaustive()
    }
}
