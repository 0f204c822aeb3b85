//! Takes in the body of a request, within bounds of size and time.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::header::EXPECT;
use http::{HeaderMap, StatusCode};
use hyper::body::Body as _;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::options::HttpLimits;
use super::reply::{self, Reply};

/// How much room is made for a body on its word alone.
const MAX_TRUSTED_BYTES: usize = 64 * 1024;

/// How much of a body that nobody wants is read and thrown away, so that a client that sends it is still
/// there to hear why.
const MAX_IGNORED_BYTES: usize = 64 * 1024;

/// Why there is no body.
#[derive(Debug)]
pub(super) enum NoBody {
    TooLarge {
        limit: usize,
    },
    TooSlow,
    /// The client went away, or does not keep to HTTP.
    Broken(hyper::Error),
}

impl NoBody {
    pub(super) fn reply(&self) -> Reply {
        match self {
            Self::TooLarge { limit } => {
                let message = format!("The body is larger than {limit} bytes");
                reply::refusal(StatusCode::PAYLOAD_TOO_LARGE, &message)
            }
            Self::TooSlow => {
                reply::refusal(StatusCode::REQUEST_TIMEOUT, "The body came too slowly")
            }
            Self::Broken(error) => {
                tracing::debug!(%error, "a body broke off");
                reply::refusal(StatusCode::BAD_REQUEST, "The body is broken")
            }
        }
    }
}

/// The whole body.
pub(super) async fn receive(mut body: Incoming, limits: &HttpLimits) -> Result<Bytes, NoBody> {
    let limit = limits.max_body;
    let too_large = NoBody::TooLarge { limit };
    let expected = body.size_hint().lower();
    if expected > limit as u64 {
        return Err(too_large);
    }
    // Nearly always there is one piece, and it is here already.
    let begun = Instant::now();
    let Some(first) = next_piece(&mut body, begun, limits).await? else {
        return Ok(Bytes::new());
    };
    if first.len() > limit {
        return Err(too_large);
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let expected = usize::try_from(expected).unwrap_or(usize::MAX);
    let mut whole = BytesMut::with_capacity(expected.min(MAX_TRUSTED_BYTES).max(first.len()));
    whole.extend_from_slice(&first);
    while let Some(piece) = next_piece(&mut body, begun, limits).await? {
        if whole.len() + piece.len() > limit {
            return Err(too_large);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Takes nothing in. What is small is let pass by; whoever sends more than that, or asks first whether it
/// is wanted, hears the answer at once.
pub(super) async fn ignore(mut body: Incoming, head: &HeaderMap, limits: &HttpLimits) {
    let is_large = |bytes: u64| bytes > MAX_IGNORED_BYTES as u64;
    if head.contains_key(EXPECT) || is_large(body.size_hint().lower()) {
        return;
    }
    let begun = Instant::now();
    let mut passed = 0;
    while !is_large(passed) && !body.is_end_stream() {
        match next_piece(&mut body, begun, limits).await {
            Ok(Some(piece)) => passed += piece.len() as u64,
            Ok(None) | Err(_) => return,
        }
    }
}

async fn next_piece(
    body: &mut Incoming,
    begun: Instant,
    limits: &HttpLimits,
) -> Result<Option<Bytes>, NoBody> {
    loop {
        let deadline = begun + limits.body_deadline;
        let deadline = deadline.min(Instant::now() + limits.body_timeout);
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
        match timeout_at(deadline, frame).await {
            Err(_elapsed) => return Err(NoBody::TooSlow),
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(NoBody::Broken(error)),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(piece) => return Ok(Some(piece)),
                // Trailers carry nothing that anybody here reads.
                Err(_trailers) => {}
            },
        }
    }
}
