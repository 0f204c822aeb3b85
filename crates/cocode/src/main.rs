//! The binary and composition root: arguments, wiring, output, exit codes.
//!
//! The only room that prints and the only one that reads the environment of the process.

mod app;
mod args;
mod arguments;
mod elicit;
mod environment;
mod error;
mod explain;
mod generate;
mod handler;
mod hints;
mod interrupt;
mod lines;
mod logging;
mod misuse;
mod printer;
mod progress;
mod render;
mod target;
mod text;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    app::main(&words)
}
