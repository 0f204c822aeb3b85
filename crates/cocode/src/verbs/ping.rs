//! Asks a server for a sign of life.

use cocode_client::RequestOptions;

use super::Context;
use crate::error::CliError;
use crate::hints::{Doing, request_error};
use crate::text::duration;

pub(crate) async fn run(context: &Context<'_>) -> Result<(), CliError> {
    let took = context.session.ping(RequestOptions::default()).await;
    let took = took.map_err(|error| request_error(&error, Doing::Other))?;
    if context.printer.json() {
        let milliseconds = took.as_secs_f64() * 1000.0;
        return context
            .printer
            .out_line(&format!("{{\"milliseconds\":{milliseconds:.3}}}"));
    }
    context
        .printer
        .out_line(&format!("the server answered within {}", duration(took)))
}
