//! Writing a [`Script`]: the rules and steps that only an HTTP server knows.

use crate::builder::owned;
use crate::script::{HttpStep, HttpTransport, Script, SseEvent, Step, Trigger};
use crate::template::Template;

impl Script {
    /// HTTP only: offers the legacy `GET` stream, into which the test can push. Without this,
    /// `GET` is answered with 405.
    pub fn get_stream(mut self) -> Self {
        self.http.get_stream = true;
        self
    }

    /// HTTP only: answers requests with an event stream of one event instead of JSON.
    pub fn event_answers(mut self) -> Self {
        self.http.event_answers = true;
        self
    }

    /// HTTP only: gives out no session ids and asks for none.
    pub fn sessionless(mut self) -> Self {
        self.http.sessionless = true;
        self
    }

    /// HTTP only: is a server of 2024-11-05, with `GET /sse` and `POST /messages`. Messages of
    /// rules go to the `GET` stream of the client that posted.
    pub fn http_sse(mut self) -> Self {
        self.http.transport = HttpTransport::TwoEndpoints;
        self
    }

    /// HTTP only: opens a rule for all requests of a verb, such as `GET`.
    pub fn on_http(self, verb: &str) -> Self {
        self.rule(Trigger::Verb(verb.to_owned()))
    }

    /// HTTP only: answers with exactly this status, these headers and this body.
    pub fn respond(self, status: u16, headers: &[(&str, &str)], body: impl Into<Template>) -> Self {
        let headers = owned(headers);
        self.http_step(HttpStep::Respond {
            status,
            headers,
            body: body.into(),
        })
    }

    /// HTTP only: answers with this status and no body.
    pub fn status(self, status: u16) -> Self {
        self.respond(status, &[], "")
    }

    /// HTTP only: answers 401 with these headers, such as `WWW-Authenticate`.
    pub fn unauthorized(self, headers: &[(&str, &str)]) -> Self {
        self.respond(401, headers, "")
    }

    /// HTTP only: redirects with this status, such as 307.
    pub fn redirect(self, status: u16, location: &str) -> Self {
        self.respond(status, &[("Location", location)], "")
    }

    /// HTTP only: answers with a web page.
    pub fn html(self, status: u16, body: &str) -> Self {
        self.respond(status, &[("Content-Type", "text/html")], body)
    }

    /// HTTP only: answers with JSON of this text, which need not be a message.
    pub fn json(self, body: impl Into<Template>) -> Self {
        self.respond(200, &[("Content-Type", "application/json")], body)
    }

    /// HTTP only: starts an event stream. Messages, text and bytes after this go into the stream,
    /// and the end of the rule is the proper end of the stream.
    ///
    /// A rule with more than one message starts its stream by itself.
    pub fn stream(self) -> Self {
        self.stream_with(&[])
    }

    /// As [`stream`](Self::stream), with headers of its own. A `Content-Type` among them replaces
    /// the usual one.
    pub fn stream_with(self, headers: &[(&str, &str)]) -> Self {
        self.http_step(HttpStep::Stream {
            headers: owned(headers),
        })
    }

    /// HTTP only: sends one event.
    pub fn event(self, event: SseEvent) -> Self {
        self.http_step(HttpStep::Event(event))
    }

    /// HTTP only: sends a comment on the stream.
    pub fn comment(self, text: &str) -> Self {
        self.text(Template::literal(&format!(": {text}\n\n")))
    }

    /// HTTP only: from here on, writes the stream in pieces of this many bytes.
    pub fn in_pieces(self, bytes: usize) -> Self {
        assert!(bytes > 0, "a piece has at least one byte");
        self.http_step(HttpStep::Pieces(bytes))
    }

    /// HTTP only: leaves the request as it is, neither finished nor closed.
    pub fn stall(self) -> Self {
        self.http_step(HttpStep::Stall)
    }

    /// HTTP only: leaves the stream to the test, which pushes into it and ends it.
    pub fn pushes(self) -> Self {
        self.http_step(HttpStep::Pushes)
    }

    fn http_step(self, step: HttpStep) -> Self {
        self.step(Step::Http(step))
    }
}
