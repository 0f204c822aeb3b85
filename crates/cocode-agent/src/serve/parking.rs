//! Turns that wait until their client, which keeps no connection, comes back with answers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_wire::{RpcError, code};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::turns::Running;
use crate::store::ConversationId;

/// Turns that may be parked at once. If there are more, the one that waits for the longest time is
/// given up.
const MAX_PARKED: usize = 32;
/// How long a handle is good for. What was asked is given up long before that, so who comes back late
/// still learns what became of the turn.
const KEPT_FOR: Duration = Duration::from_hours(1);
/// Bytes of a handle: nobody guesses it.
const HANDLE_BYTES: usize = 24;

/// The parked turns of a server.
pub(super) struct Parking {
    spots: Mutex<HashMap<String, Parked>>,
    random: SystemRandom,
}

/// A call, as far as it has to be the same when a client comes back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
}

struct Parked {
    until: Instant,
    /// The handle is good for nothing else.
    call: Call,
    running: Running,
}

impl Parking {
    pub(super) fn new() -> Self {
        Self {
            spots: Mutex::default(),
            random: SystemRandom::new(),
        }
    }

    /// Parks a turn, and gives the handle by which it is found again.
    pub(super) fn park(&self, call: Call, running: Running) -> Result<String, RpcError> {
        let handle = self.new_handle()?;
        let now = Instant::now();
        let parked = Parked {
            until: now + KEPT_FOR,
            call,
            running,
        };
        // Dropping them interrupts their turns, which needs no lock.
        let mut given_up: Vec<Parked> = Vec::new();
        let mut spots = self.lock();
        let late = spots.extract_if(|_, parked| parked.until <= now);
        given_up.extend(late.map(|(_, parked)| parked));
        if spots.len() >= MAX_PARKED {
            let oldest = spots.iter().min_by_key(|(_, parked)| {
                // Those that are over make room first.
                (!parked.running.interrupt.is_cancelled(), parked.until)
            });
            let oldest = oldest.map(|(handle, _)| handle.clone());
            given_up.extend(oldest.and_then(|handle| spots.remove(&handle)));
        }
        spots.insert(handle.clone(), parked);
        drop(spots);
        drop(given_up);
        Ok(handle)
    }

    /// The turn that a client comes back to. A handle is good once, and for the same call.
    pub(super) fn take(&self, state: &Value, call: &Call) -> Result<Running, RpcError> {
        let unknown = || {
            let what = "the `requestState` is unknown, was used before, or has expired: make the call \
                        again without it, or go on with `cocode-reply`";
            RpcError::new(code::INVALID_PARAMS, what)
        };
        let handle = state.as_str().ok_or_else(unknown)?;
        let mut spots = self.lock();
        let found = spots.get(handle).ok_or_else(unknown)?;
        if found.call != *call {
            let what = "the `requestState` belongs to another call: it is good for the same tool with \
                        the same arguments only";
            return Err(RpcError::new(code::INVALID_PARAMS, what));
        }
        let parked = spots.remove(handle).ok_or_else(unknown)?;
        drop(spots);
        if parked.until <= Instant::now() {
            return Err(unknown());
        }
        Ok(parked.running)
    }

    /// Interrupts the parked turn of a conversation, if there is one. Its handle stays: who comes back
    /// all the same learns what became of it.
    pub(super) fn give_up(&self, id: &ConversationId) {
        let spots = self.lock();
        let parked = spots.values().map(|parked| &parked.running);
        for running in parked.filter(|running| running.mark.is_of(id)) {
            running.interrupt.cancel();
        }
    }

    /// Gives up all.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn new_handle(&self) -> Result<String, RpcError> {
        let mut bytes = [0; HANDLE_BYTES];
        let none = |_| RpcError::new(code::INTERNAL_ERROR, "there are no random numbers");
        self.random.fill(&mut bytes).map_err(none)?;
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let digits = digits.filter_map(|digit| char::from_digit(u32::from(digit), 16));
        Ok(digits.collect())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.spots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
