//! Tokens that were verified, by their hash, so that a signature is checked once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::principal::Principal;
use crate::token_store::TokenHash;

/// Tokens that are remembered; of more, the last ones.
const MAX_VERIFIED: usize = 4_096;

/// Remembers verified tokens.
#[derive(Debug, Default)]
pub(super) struct Verified {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    tokens: HashMap<TokenHash, Entry>,
    /// In the order in which they came.
    order: VecDeque<TokenHash>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) principal: Principal,
    pub(super) until: SystemTime,
    /// Whose keys it was verified with, and which.
    pub(super) issuer: usize,
    pub(super) n_changes: u64,
}

impl Verified {
    /// What is known of a token that is still good at this time. Whether the keys are still those that
    /// it was verified with is asked by whoever knows them.
    pub(super) fn get(&self, token: &TokenHash, now: SystemTime) -> Option<Entry> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.tokens.get(token).filter(|entry| now < entry.until);
        found.cloned()
    }

    pub(super) fn insert(&self, token: TokenHash, entry: Entry) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.tokens.insert(token, entry).is_some() {
            return;
        }
        kept.order.push_back(token);
        if kept.order.len() > MAX_VERIFIED
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.tokens.remove(&oldest);
        }
    }

    /// Forgets all that was verified with other keys of an issuer than those it has now.
    pub(super) fn forget_older(&self, issuer: usize, n_changes: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { tokens, order } = &mut *kept;
        tokens.retain(|_, entry| entry.issuer != issuer || entry.n_changes == n_changes);
        order.retain(|token| tokens.contains_key(token));
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{Entry, MAX_VERIFIED, Verified};
    use crate::digest::sha256;
    use crate::principal::Principal;
    use crate::token_store::TokenHash;

    fn hash(number: usize) -> TokenHash {
        TokenHash::from_bytes(sha256(&number.to_be_bytes()))
    }

    fn entry(until: SystemTime, n_changes: u64) -> Entry {
        Entry {
            principal: Principal::local(),
            until,
            issuer: 0,
            n_changes,
        }
    }

    #[test]
    fn tokens_are_known_until_they_expire_and_only_so_many() {
        let verified = Verified::default();
        let now = SystemTime::now();
        let later = now + Duration::from_mins(1);
        for number in 0..=MAX_VERIFIED {
            verified.insert(hash(number), entry(later, 0));
        }
        assert!(verified.get(&hash(0), now).is_none());
        assert!(verified.get(&hash(1), now).is_some());
        assert!(verified.get(&hash(1), later).is_none());
        let kept = verified.kept.lock().unwrap();
        assert_eq!(
            (kept.tokens.len(), kept.order.len()),
            (MAX_VERIFIED, MAX_VERIFIED)
        );
    }

    #[test]
    fn what_was_verified_with_other_keys_is_forgotten() {
        let verified = Verified::default();
        let now = SystemTime::now();
        let later = now + Duration::from_mins(1);
        verified.insert(hash(1), entry(later, 1));
        verified.insert(hash(2), entry(later, 2));
        verified.forget_older(0, 2);
        assert!(verified.get(&hash(1), now).is_none());
        assert!(verified.get(&hash(2), now).is_some());
        assert_eq!(verified.kept.lock().unwrap().order.len(), 1);
        verified.forget_older(7, 9);
        assert!(verified.get(&hash(2), now).is_some());
    }
}
