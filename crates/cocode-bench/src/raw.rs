//! The yardstick: hand-written clients that do nothing but move lines through pipes.
//!
//! There are three, because no single one is the fastest everywhere; whichever is fastest in a
//! setting is what a session is measured against. None of them has deadlines, cancellation,
//! progress, size limits or a guard for its process.
//!
//! Beside them, the same for a gateway: bytes that are passed on as they come ([`forwarder`]), and the
//! least that answers HTTP ([`bare`]).

pub(crate) mod bare;
pub(crate) mod child;
pub(crate) mod direct;
pub(crate) mod envelope;
pub(crate) mod forwarder;
pub(crate) mod shared;
