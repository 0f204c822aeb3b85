//! The HTTP server end, seen by clients that speak raw HTTP and by the client links of this crate.

mod apart;
mod attacks;
mod batches;
mod drain;
mod era;
mod frail;
mod guests;
mod headers;
mod leaving;
mod links;
mod moving;
mod old_sse;
mod resume;
mod sessions;
mod site;
mod wire;
