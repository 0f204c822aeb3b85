//! An endpoint of a view: who comes there talks to its room.

use std::sync::{Arc, OnceLock, Weak};

use cocode_wire::serve::{Conversation, Endpoint, Sink};

use crate::downstream::Downstream;
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
}

impl Place {
    pub(crate) fn new(room: Arc<dyn Room>, view: &Arc<Inner>) -> Arc<Self> {
        Self::of(room, Arc::downgrade(view), Announced::default())
    }

    /// The same place, for clients of whose models this is known.
    pub(crate) fn announcing(&self, announced: Announced) -> Arc<Self> {
        Self::of(Arc::clone(&self.room), Weak::clone(&self.view), announced)
    }

    fn of(room: Arc<dyn Room>, view: Weak<Inner>, announced: Announced) -> Arc<Self> {
        Arc::new(Self {
            stateless: OnceLock::new(),
            room,
            view,
            announced,
        })
    }
}

impl Endpoint for Place {
    fn converse(&self, outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        let client = Downstream::new(Arc::clone(&self.room), Some(outlet), self.announced);
        if let Some(view) = self.view.upgrade() {
            view.remember(&client);
        }
        client
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        let (room, announced) = (&self.room, self.announced);
        let stateless = self
            .stateless
            .get_or_init(|| Downstream::new(Arc::clone(room), None, announced));
        Arc::clone(stateless) as Arc<dyn Conversation>
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Place").finish_non_exhaustive()
    }
}
