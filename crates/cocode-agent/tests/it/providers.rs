//! Providers of models against scripted servers of the interfaces that they speak.

mod anthropic;
mod chat;
mod errors;
mod faults;
mod pieces;
mod replies;
mod responses;
mod sampling;
mod support;
