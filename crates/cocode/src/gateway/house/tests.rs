//! The house over a real gateway, with scripted servers and real files of configuration.

mod access;
mod calls;
mod changes;
mod events;
mod login_peer;
mod offers;
mod shown;
mod stage;
mod trust;
