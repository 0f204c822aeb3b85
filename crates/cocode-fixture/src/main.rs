//! The testkit's fixture: an MCP server that offers all that the official conformance suites want.
//!
//! It is written on rmcp, so that what stands behind a gateway under test is an implementation
//! that is not ours. It is a crate of its own to keep the testkit light to build.
//!
//! ```text
//! cocode-fixture stdio|http [--port PORT] [--era both|legacy|modern]
//! ```
//!
//! Over HTTP the first line of standard output is the URL. The era says which clients it serves:
//! those that initialize a session, those that send stateless requests, or both. A tool that wants
//! something of the client asks for it in whichever way the client's era has.

#![expect(
    deprecated,
    reason = "clients of both eras are served, and the suites want what the newer one deprecates"
)]
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test helper: what is written wrong here may end it, and its URL goes to standard output"
)]

mod arguments;
mod call;
mod catalog;
mod changes;
mod completion;
mod dialog;
mod era;
mod http;
mod prompts;
mod questions;
mod resources;
mod screen;
mod server;
mod sessions;
mod shared;
mod stdio;
mod tools;

use std::error::Error;
use std::process::ExitCode;

use crate::arguments::{Arguments, Transport};
use crate::shared::Shared;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let shared = Shared::new(arguments.era);
    match arguments.transport {
        Transport::Stdio => stdio::serve(shared).await,
        Transport::Http { port } => http::serve(shared, port).await,
    }
}
