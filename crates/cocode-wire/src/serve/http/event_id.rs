//! The ids of events: where an event stands, and which requests its stream is about, so that a
//! server that never had the stream can say to whom it was owed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use crate::encode::push_number;
use crate::raw::RawJson;

/// What stands for the place behind the last event of a stream.
const END: &str = "end";

/// The longest request id that is written into ids of events.
const MAX_REQUEST_BYTES: usize = 128;

/// How much ids of events say about requests.
const MAX_ABOUT_BYTES: usize = 256;

/// A request id that is not written as it is.
const ENCODED: char = '~';

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId<'a> {
    /// A random number of the session as it is kept by one server. A session that went on elsewhere,
    /// or came back, has another one, and its streams are others.
    pub(super) origin: u32,
    pub(super) stream: u64,
    /// The place in the stream; [`EventId::END`] behind everything.
    pub(super) place: u64,
    /// The requests that the stream is about, as [`about`] writes them.
    pub(super) about: &'a str,
}

impl<'a> EventId<'a> {
    /// The place behind the last event of a stream.
    pub(super) const END: u64 = u64::MAX;

    /// Reads what [`EventId::push`] wrote.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(4, '.');
        let origin = parts.next().filter(|origin| origin.len() == 8)?;
        let stream = parts.next()?;
        let place = parts.next()?;
        Some(Self {
            origin: u32::from_str_radix(origin, 16).ok()?,
            stream: stream.parse().ok()?,
            place: if place == END {
                Self::END
            } else {
                place.parse().ok()?
            },
            about: parts.next().unwrap_or_default(),
        })
    }

    /// Writes it, in few characters that every client passes on as they are.
    pub(super) fn push(&self, text: &mut Vec<u8>) {
        for byte in self.origin.to_be_bytes() {
            text.extend([byte >> 4, byte & 15].map(hex_digit));
        }
        text.push(b'.');
        push_number(text, self.stream);
        text.push(b'.');
        if self.place == Self::END {
            text.extend_from_slice(END.as_bytes());
        } else {
            push_number(text, self.place);
        }
        if !self.about.is_empty() {
            text.push(b'.');
            text.extend_from_slice(self.about.as_bytes());
        }
    }
}

fn hex_digit(value: u8) -> u8 {
    if value < 10 {
        b'0' + value
    } else {
        b'a' + value - 10
    }
}

/// Names requests by their ids. What is too long is left out.
pub(super) fn about<'a>(requests: impl IntoIterator<Item = &'a RawJson>) -> Box<str> {
    let mut text = String::new();
    for id in requests {
        let id = id.as_str();
        let digits = id.strip_prefix('-').unwrap_or(id);
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let name = if is_plain {
            id.to_owned()
        } else {
            format!("{ENCODED}{}", URL_SAFE_NO_PAD.encode(id))
        };
        let is_short =
            id.len() <= MAX_REQUEST_BYTES && text.len() + name.len() + 1 < MAX_ABOUT_BYTES;
        if !is_short {
            continue;
        }
        if !text.is_empty() {
            text.push('+');
        }
        text.push_str(&name);
    }
    text.into()
}

/// The ids of the requests that were named.
pub(super) fn requests(about: &str) -> Vec<RawJson> {
    if about.len() > MAX_ABOUT_BYTES {
        return Vec::new();
    }
    let names = about.split('+');
    names.filter_map(request).collect()
}

fn request(name: &str) -> Option<RawJson> {
    let id = match name.strip_prefix(ENCODED) {
        Some(encoded) => URL_SAFE_NO_PAD.decode(encoded).ok()?,
        None => name.as_bytes().to_vec(),
    };
    // It comes from a client, who may write what it likes.
    let id = RawJson::parse(Bytes::from(id)).ok()?;
    matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9')).then_some(id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EventId, about, requests};
    use crate::raw::RawJson;

    fn id(about: &str) -> EventId<'_> {
        EventId {
            origin: 0x00c0_ffee,
            stream: 3,
            place: 17,
            about,
        }
    }

    fn written(id: &EventId<'_>) -> String {
        let mut text = Vec::new();
        id.push(&mut text);
        String::from_utf8(text).unwrap()
    }

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn ids_are_short_and_read_back() {
        for (id, text) in [
            (id(""), "00c0ffee.3.17"),
            (id("42"), "00c0ffee.3.17.42"),
            (
                EventId {
                    place: EventId::END,
                    ..id("~IngueSI")
                },
                "00c0ffee.3.end.~IngueSI",
            ),
        ] {
            assert_eq!(written(&id), text);
            assert_eq!(EventId::parse(text), Some(id));
        }
    }

    #[test]
    fn what_is_no_id_is_not_taken_for_one() {
        for text in [
            "",
            "1.2",
            "c0ffee.1.2",
            "00c0ffee.1",
            "00c0ffee.1.",
            "00c0ffee..1",
            "00c0ffee.1.x",
            "00c0ffeg.1.2",
            "00c0ffee.-1.2",
            "00c0ffee.99999999999999999999.1",
        ] {
            assert_eq!(EventId::parse(text), None, "for {text:?}");
        }
    }

    #[test]
    fn requests_are_named_by_their_ids() {
        for ids in [
            &["7"][..],
            &["-12"],
            &["\"a.b+c~\""],
            &["1.5e3"],
            &["1", "\"two\"", "3"],
        ] {
            let ids: Vec<RawJson> = ids.iter().copied().map(raw).collect();
            let text = about(&ids);
            let read: Vec<String> = requests(&text).iter().map(ToString::to_string).collect();
            let all: Vec<String> = ids.iter().map(ToString::to_string).collect();
            assert_eq!(read, all);
            let whole = written(&id(&text));
            assert_eq!(EventId::parse(&whole), Some(id(&text)), "{whole}");
        }
    }

    #[test]
    fn what_is_too_long_is_left_out() {
        let long = raw(&format!("\"{}\"", "x".repeat(200)));
        assert_eq!(&*about([&long]), "");
        assert_eq!(&*about([&long, &raw("1")]), "1");
        let many: Vec<RawJson> = (0..1000).map(|id| raw(&id.to_string())).collect();
        let text = about(&many);
        assert!(text.len() < 256, "{text}");
        assert!(!requests(&text).is_empty());
    }

    proptest! {
        #[test]
        fn whatever_a_client_writes_is_an_id_or_nothing(text in ".{0,300}") {
            if let Some(id) = EventId::parse(&text) {
                for request in requests(id.about) {
                    let first = request.as_bytes()[0];
                    prop_assert!(first == b'"' || first == b'-' || first.is_ascii_digit());
                }
            }
        }

        #[test]
        fn every_id_of_a_request_comes_back(text in "[ -~]{0,60}") {
            let id = RawJson::of(&text).unwrap();
            let read = requests(&about([&id]));
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(read[0].as_str(), id.as_str());
        }
    }
}
