//! What persons have allowed for good in conversations that go on here: a conversation is let go
//! between its turns, and would forget it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::store::ConversationId;

/// Conversations that are remembered.
const MAX_CONVERSATIONS: usize = 256;

/// The allowances of conversations.
#[derive(Debug, Default)]
pub(super) struct Allowances(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<ConversationId, BTreeSet<String>>,
    /// The longest known first.
    order: VecDeque<ConversationId>,
}

impl Allowances {
    pub(super) fn of(&self, id: &ConversationId) -> BTreeSet<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.by_id.get(id).cloned().unwrap_or_default()
    }

    pub(super) fn are_now(&self, id: &ConversationId, allowed: BTreeSet<String>) {
        if allowed.is_empty() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.by_id.insert(id.clone(), allowed).is_some() {
            return;
        }
        known.order.push_back(id.clone());
        if known.order.len() > MAX_CONVERSATIONS
            && let Some(oldest) = known.order.pop_front()
        {
            known.by_id.remove(&oldest);
        }
    }
}
