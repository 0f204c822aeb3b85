//! The binary and composition root: arguments, wiring, output, exit codes.
//!
//! The only room that prints and the only one that reads the environment of the process.

mod access;
mod admission;
mod agent;
mod api_client;
mod app;
mod args;
mod arguments;
mod auth;
mod budget;
mod command_line;
mod configured;
mod daemon;
mod elicit;
mod environment;
mod error;
mod explain;
mod fleet;
mod gate;
mod gateway;
mod generate;
mod govern;
mod handler;
mod hints;
mod interactive;
mod interrupt;
mod itself;
mod lines;
mod logging;
mod manage;
mod managing;
mod misuse;
mod naming;
mod operate;
mod printer;
mod progress;
mod reach;
mod records;
mod render;
mod results;
mod screen;
mod search;
mod serve;
mod serving;
mod session;
mod sharing;
mod stores;
mod table;
mod target;
mod telemetry;
mod text;
mod tool_search;
mod toolbox;
mod trouble;
mod verbs;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    app::main(&words)
}
