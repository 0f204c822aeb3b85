//! Many servers that fail in every way that a server can fail.

mod accounts;
mod changes;
mod crashes;
mod faulty;
mod known_eras;
mod patience;
mod promises;
mod refusals;
mod remembering;
mod resumed;
mod retries;
mod servers;
mod sharing;
mod sickness;
mod story;
mod unread;
