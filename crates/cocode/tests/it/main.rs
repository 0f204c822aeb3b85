//! The whole program, run against scripted servers.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests only, which start the program as a user would"
)]

mod agent_clients;
mod agent_exec;
mod agent_gateway;
mod audit;
mod budgeting;
mod calling;
mod catalog_peers;
mod config_files;
mod credentials_peer;
mod daemon;
mod daemon_entry;
mod daemon_hangs;
mod daemon_switch;
mod daemon_verbs;
mod dashboard;
mod doctor;
mod elicitation;
mod exchange;
mod exchange_peer;
mod exit_codes;
mod fidelity;
mod fronts;
mod gateway;
mod gateway_access;
mod gateway_api_peer;
mod gateway_bytes;
mod gateway_commands;
mod gateway_deeds;
mod gateway_door;
mod gateway_forgery;
mod gateway_fronts;
mod gateway_limits;
mod gateway_oauth;
mod gateway_oauth_peer;
mod gateway_peers;
mod gateway_postgres;
mod gateway_search;
mod gateway_unread;
mod gateway_verbs;
mod hardening;
mod harness;
mod home;
mod http;
mod interactive;
mod interrupting;
mod keeping;
mod login;
mod login_peer;
mod logout_peer;
mod logs;
mod managed;
mod moving;
mod named_peer;
mod nginx;
mod oauth_peer;
mod output;
mod packaging;
mod permissions;
mod plugins;
mod policy;
mod providers;
mod quiet;
mod results;
#[cfg(target_os = "linux")]
mod sandbox_peer;
mod searching;
mod secrets;
mod sign_in;
mod status;
mod status_verb;
mod terminal;
mod tmux;
mod tokens;
mod transports;
mod trusting;
mod two_gateways_peer;
mod using;
mod verbs;
