//! Trace context as it travels in `_meta`: checked when it comes in, passed on as it was.
//!
//! The keys are those of SEP-414: `traceparent` and `tracestate` of W3C Trace Context, `baggage` of
//! W3C Baggage, without a prefix.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use cocode_wire::RawJson;
use cocode_wire::encode::push_string;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

use cocode_wire::encode::push_member;
use cocode_wire::members::Members;

/// What a trace context is called in `_meta`.
const KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];
/// The length of a `traceparent` of version 00, and of what every later version begins with.
const TRACEPARENT_BYTES: usize = 55;
/// List members of a `tracestate`; its specification allows no more.
const MAX_TRACESTATE_MEMBERS: usize = 32;
/// A key or a value of a `tracestate`; its specification allows no more.
const MAX_TRACESTATE_BYTES: usize = 256;
/// List members of `baggage`; nobody has to pass on more.
const MAX_BAGGAGE_MEMBERS: usize = 64;
/// All of `baggage`; nobody has to pass on more.
const MAX_BAGGAGE_BYTES: usize = 8192;
/// The flags that have a meaning: sampled, and a trace id of random bits.
const KNOWN_FLAGS: u8 = 0b11;

/// Where in a trace something happens, and what goes with it. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceContext(Arc<Parts>);

#[derive(Clone, Default, PartialEq, Eq)]
struct Parts {
    traceparent: Option<Box<str>>,
    tracestate: Option<Box<str>>,
    baggage: Option<Box<str>>,
}

/// Which part of a trace context does not follow its specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTraceContext {
    /// The place in the trace.
    #[error("the `traceparent` is not one of W3C Trace Context")]
    Traceparent,
    /// What tracing systems add.
    #[error("the `tracestate` is not one of W3C Trace Context")]
    Tracestate,
    /// What the application adds.
    #[error("the `baggage` is not one of W3C Baggage, or too large")]
    Baggage,
}

impl TraceContext {
    /// A place in a trace, such as `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`.
    pub fn parse(traceparent: &str) -> Result<Self, InvalidTraceContext> {
        let traceparent = trimmed(traceparent);
        remote(traceparent).ok_or(InvalidTraceContext::Traceparent)?;
        Ok(Self::of(Parts {
            traceparent: Some(traceparent.into()),
            ..Parts::default()
        }))
    }

    /// Baggage that belongs to no trace.
    pub fn of_baggage(baggage: &str) -> Result<Self, InvalidTraceContext> {
        Self::of(Parts::default()).with_baggage(baggage)
    }

    /// The same with a `tracestate`. An empty one is none.
    pub fn with_tracestate(mut self, tracestate: &str) -> Result<Self, InvalidTraceContext> {
        let tracestate = trimmed(tracestate);
        if !is_tracestate(tracestate) {
            return Err(InvalidTraceContext::Tracestate);
        }
        Arc::make_mut(&mut self.0).tracestate = filled(tracestate);
        Ok(self)
    }

    /// The same with `baggage`. An empty one is none.
    pub fn with_baggage(mut self, baggage: &str) -> Result<Self, InvalidTraceContext> {
        let baggage = trimmed(baggage);
        if !is_baggage(baggage) {
            return Err(InvalidTraceContext::Baggage);
        }
        Arc::make_mut(&mut self.0).baggage = filled(baggage);
        Ok(self)
    }

    /// What a `_meta` object says. Parts that do not follow their specifications are left out; a
    /// `tracestate` goes with its `traceparent`.
    pub fn from_meta(meta: &RawJson) -> Option<Self> {
        let members: Members<'_> = meta.decode().ok()?;
        let text = |name| {
            let value = members.get(name)?;
            serde_json::from_str::<Cow<'_, str>>(value.get()).ok()
        };
        let mut context = Self::of(Parts::default());
        if let Some(traceparent) = text("traceparent")
            && let Ok(parsed) = Self::parse(&traceparent)
        {
            context = parsed;
            if let Some(tracestate) = text("tracestate") {
                let bare = context.clone();
                context = context.with_tracestate(&tracestate).unwrap_or(bare);
            }
        }
        if let Some(baggage) = text("baggage") {
            let bare = context.clone();
            context = context.with_baggage(&baggage).unwrap_or(bare);
        }
        (*context.0 != Parts::default()).then_some(context)
    }

    /// The members that a `_meta` object gets: JSON object text without its braces.
    pub fn to_meta_members(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(2 * TRACEPARENT_BYTES);
        let values = [self.traceparent(), self.tracestate(), self.baggage()];
        for (name, value) in KEYS.into_iter().zip(values) {
            let Some(value) = value else { continue };
            if !text.is_empty() {
                text.push(b',');
            }
            push_string(&mut text, name);
            text.push(b':');
            push_string(&mut text, value);
        }
        text
    }

    /// A `_meta` object with this context in place of whatever it says about one; an object of its
    /// own where there is none. `None` if `meta` is no object.
    pub fn added_to(&self, meta: Option<&RawJson>) -> Option<RawJson> {
        let mut text = b"{".to_vec();
        text.extend(self.to_meta_members());
        let members = match meta {
            Some(meta) => meta.decode::<Members<'_>>().ok()?,
            None => Members::default(),
        };
        for (key, value) in &members.0 {
            if KEYS.contains(&key.as_ref()) {
                continue;
            }
            if text.len() > 1 {
                text.push(b',');
            }
            push_member(&mut text, key, value.get());
        }
        text.push(b'}');
        RawJson::parse(text).ok()
    }

    /// The place in the trace.
    pub fn traceparent(&self) -> Option<&str> {
        self.0.traceparent.as_deref()
    }

    /// What tracing systems added.
    pub fn tracestate(&self) -> Option<&str> {
        // It has no meaning of its own.
        self.traceparent()?;
        self.0.tracestate.as_deref()
    }

    /// What the application added.
    pub fn baggage(&self) -> Option<&str> {
        self.0.baggage.as_deref()
    }

    /// The place in the trace, as the parent of a new span.
    pub(super) fn span_context(&self) -> Option<SpanContext> {
        let (trace, span, flags) = remote(self.traceparent()?)?;
        let state = self.tracestate().and_then(|state| state.parse().ok());
        let state: TraceState = state.unwrap_or_default();
        Some(SpanContext::new(trace, span, flags, true, state))
    }

    /// The place of a span that was begun here, with the baggage of whoever asked for it.
    pub(super) fn of_span(span: &SpanContext, parent: Option<&Self>) -> Self {
        let flags = span.trace_flags().to_u8() & KNOWN_FLAGS;
        let place = format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id());
        Self::of(Parts {
            traceparent: Some(place.into()),
            tracestate: filled(&span.trace_state().header()),
            baggage: parent.and_then(|parent| parent.0.baggage.clone()),
        })
    }

    fn of(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

/// Baggage and state can be personal, and do not show.
impl fmt::Debug for TraceContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TraceContext")
            .field("traceparent", &self.0.traceparent)
            .finish_non_exhaustive()
    }
}

fn filled(text: &str) -> Option<Box<str>> {
    (!text.is_empty()).then(|| text.into())
}

/// Without the blanks that may surround anything in these formats.
fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// The parts of a `traceparent`. One of a later version counts by what version 00 knows of it.
fn remote(text: &str) -> Option<(TraceId, SpanId, TraceFlags)> {
    let (known, more) = text.split_at_checked(TRACEPARENT_BYTES)?;
    let mut fields = known.split('-');
    let mut field = |length| {
        let field = fields.next()?;
        (field.len() == length && field.bytes().all(is_lower_hex)).then_some(field)
    };
    let (version, trace, span, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
    let fits = match version {
        "ff" => false,
        "00" => more.is_empty(),
        _ => more.is_empty() || more.starts_with('-'),
    };
    let trace = TraceId::from_hex(trace).ok()?;
    let span = SpanId::from_hex(span).ok()?;
    let flags = u8::from_str_radix(flags, 16).ok()? & KNOWN_FLAGS;
    let is_valid = fits && trace != TraceId::INVALID && span != SpanId::INVALID;
    is_valid.then(|| (trace, span, TraceFlags::new(flags)))
}

fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

fn is_tracestate(text: &str) -> bool {
    let mut keys = Vec::new();
    for member in text.split(',').map(trimmed).filter(|text| !text.is_empty()) {
        let Some((key, value)) = member.split_once('=') else {
            return false;
        };
        if !is_state_key(key) || !is_state_value(value) || keys.contains(&key) {
            return false;
        }
        keys.push(key);
    }
    keys.len() <= MAX_TRACESTATE_MEMBERS
}

fn is_state_key(key: &str) -> bool {
    let begins = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let goes_on = |byte: u8| begins(&byte) || b"_-*/@".contains(&byte);
    key.len() <= MAX_TRACESTATE_BYTES
        && key.as_bytes().first().is_some_and(begins)
        && key.bytes().all(goes_on)
}

fn is_state_value(value: &str) -> bool {
    let printable = |byte| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'=');
    (1..=MAX_TRACESTATE_BYTES).contains(&value.len()) && value.bytes().all(printable)
}

fn is_baggage(text: &str) -> bool {
    if text.len() > MAX_BAGGAGE_BYTES || text.split(',').count() > MAX_BAGGAGE_MEMBERS {
        return false;
    }
    text.is_empty() || text.split(',').all(is_baggage_member)
}

/// `key=value`, and then properties, with or without a value.
fn is_baggage_member(member: &str) -> bool {
    let mut pieces = member.split(';');
    let pair = |text: &str| {
        text.split_once('=')
            .is_some_and(|(key, value)| is_token(trimmed(key)) && is_octets(trimmed(value)))
    };
    pieces.next().is_some_and(pair) && pieces.all(|text| pair(text) || is_token(trimmed(text)))
}

/// A token of HTTP.
fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

fn is_octets(text: &str) -> bool {
    let fits = |byte| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b',' | b';' | b'\\');
    text.bytes().all(fits)
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
