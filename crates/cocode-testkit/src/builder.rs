//! Writing a [`Script`]: the rules, and the steps that every carrier knows.

use std::time::Duration;

use serde_json::Value;

use crate::gate::Gate;
use crate::script::{Era, ProcessStep, Refusal, Rule, Script, Step, ToolPages, Trigger};
use crate::template::Template;

impl Script {
    /// A legacy server with one tool, `echo`, one resource and one prompt.
    pub fn new() -> Self {
        Self::default()
    }

    /// A server that speaks 2026-07-28 only.
    pub fn modern() -> Self {
        Self::new().era(Era::Modern)
    }

    /// A server that speaks both eras.
    pub fn dual() -> Self {
        Self::new().era(Era::Dual)
    }

    /// Chooses the revisions that the server speaks by itself.
    pub fn era(mut self, era: Era) -> Self {
        self.era = era;
        self
    }

    /// Lists `count` generated tools, `tool-0` and on, in pages of `page_size`.
    pub fn tools(mut self, count: usize, page_size: usize) -> Self {
        assert!(page_size > 0, "a page holds at least one tool");
        self.tools = Some(ToolPages { count, page_size });
        self
    }

    /// HTTP and WebSocket only: speaks TLS, with a certificate for `localhost` and `127.0.0.1`. The
    /// authority behind it is new with every start, so that nobody trusts it by accident.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// As a process: SIGTERM does nothing.
    pub fn ignore_sigterm(mut self) -> Self {
        self.process.ignore_sigterm = true;
        self
    }

    /// As a process: the end of stdin does nothing.
    pub fn stay_after_eof(mut self) -> Self {
        self.process.stay_after_eof = true;
        self
    }

    // Rules.

    /// Opens a rule for requests and notifications of a method; `*` is any method.
    pub fn on(self, method: &str) -> Self {
        self.rule(Trigger::Method(method.to_owned()))
    }

    /// Opens a rule that runs before anything is read.
    pub fn on_start(self) -> Self {
        self.rule(Trigger::Start)
    }

    /// Narrows the rule to the nth message that it fits, counted from one.
    ///
    /// The count starts anew in every process and every connection, except over HTTP.
    pub fn nth(mut self, nth: u32) -> Self {
        self.current().nth = Some(nth);
        self
    }

    /// Narrows the rule to the nth process or connection, counted from one.
    pub fn run(mut self, run: u32) -> Self {
        self.current().run = Some(run);
        self
    }

    // Steps: answers.

    /// Sends one message, or any other text as if it were one.
    pub fn line(self, template: impl Into<Template>) -> Self {
        self.step(Step::Line(template.into()))
    }

    /// Answers the request with this result.
    pub fn result(self, result: impl Into<Template>) -> Self {
        let result = result.into();
        let result = result.as_str();
        self.line(format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{result}}}"#))
    }

    /// Answers the request with this error.
    pub fn error(self, code: i64, message: &str) -> Self {
        let message = Value::from(message);
        self.line(format!(
            r#"{{"jsonrpc":"2.0","id":$id,"error":{{"code":{code},"message":{message}}}}}"#
        ))
    }

    /// Answers the request with a result that is its params, verbatim.
    pub fn echo(self) -> Self {
        self.result("$params")
    }

    /// Answers with a tool result that has this text.
    ///
    /// The result also says that it is complete, as the modern era wants it; the legacy era
    /// ignores that.
    pub fn text_result(self, text: &str) -> Self {
        let text = Value::from(text);
        self.result(format!(
            r#"{{"resultType":"complete","content":[{{"type":"text","text":{text}}}]}}"#
        ))
    }

    /// Sends a notification.
    pub fn notify(self, method: &str, params: impl Into<Template>) -> Self {
        self.line(notification(method, &params.into()))
    }

    /// Sends the same notification this many times, as fast as it can.
    pub fn notify_times(self, count: usize, method: &str, params: impl Into<Template>) -> Self {
        let line = notification(method, &params.into());
        self.step(Step::Lines(count, line.into()))
    }

    /// Sends a progress notification for the request.
    pub fn progress(self, progress: u32, total: u32) -> Self {
        self.notify(
            "notifications/progress",
            format!(r#"{{"progressToken":$token,"progress":{progress},"total":{total}}}"#),
        )
    }

    /// Says nothing. A rule without steps is the same; this is for the reader.
    pub fn ignore(mut self) -> Self {
        self.current();
        self
    }

    /// Does what it would have done without the rule.
    pub fn as_usual(self) -> Self {
        self.step(Step::AsUsual)
    }

    /// Answers with one tool and a new cursor, however often it is asked.
    pub fn endless_cursor(self) -> Self {
        self.one_tool_page(r#""page-$n""#)
    }

    /// Answers with one tool and the same cursor, however often it is asked.
    pub fn repeated_cursor(self) -> Self {
        self.one_tool_page(r#""again""#)
    }

    /// Answers with one tool and a cursor that is a number.
    pub fn numeric_cursor(self) -> Self {
        self.one_tool_page("7")
    }

    fn one_tool_page(self, cursor: &str) -> Self {
        self.result(format!(
            r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{{"name":"tool-$n","inputSchema":{{"type":"object"}}}}],"nextCursor":{cursor}}}"#
        ))
    }

    // Steps: bytes.

    /// Sends characters without the end of a line; over a WebSocket, one text.
    pub fn text(self, template: impl Into<Template>) -> Self {
        self.step(Step::Text(template.into()))
    }

    /// Sends bytes as they are, without variables; over a WebSocket, one binary message.
    pub fn raw(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(Step::Raw(bytes.as_ref().to_vec()))
    }

    /// Sends this many letters without the end of a line; over a WebSocket, one text.
    pub fn fill(self, bytes: usize) -> Self {
        self.step(Step::Fill(bytes))
    }

    // Steps: waiting.

    /// Sends a request and waits for its answer, which is `$answer` from here on.
    pub fn ask(self, method: &str, params: impl Into<Template>) -> Self {
        self.step(Step::Ask {
            method: method.to_owned(),
            params: params.into(),
        })
    }

    /// Waits until the test opens the gate.
    pub fn hold(self, gate: &Gate) -> Self {
        self.step(Step::Hold(gate.address()))
    }

    /// Waits this long in real time. Where the test can say when to go on, a [`Gate`] is better.
    pub fn delay(self, time: Duration) -> Self {
        self.step(Step::Delay(time))
    }

    /// Waits for a later message of this method.
    pub fn wait_for(self, method: &str) -> Self {
        self.step(Step::WaitFor(method.to_owned()))
    }

    // Steps: the end.

    /// Reads nothing any more, so that the other side's writes fill up.
    pub fn stop_reading(self) -> Self {
        self.step(Step::StopReading)
    }

    /// Drops the connection; not for processes, which [`exit`](Self::exit).
    pub fn disconnect(self) -> Self {
        self.step(Step::Disconnect)
    }

    /// Breaks the connection with a reset; not for processes. What was sent before may be lost. A
    /// unix socket has no resets and just ends.
    pub fn reset(self) -> Self {
        self.step(Step::Reset)
    }

    /// Process only: ends with this exit code.
    pub fn exit(self, code: i32) -> Self {
        self.step(Step::Process(ProcessStep::Exit(code)))
    }

    /// Process only: ends by this signal.
    pub fn kill_self(self, signal: i32) -> Self {
        self.step(Step::Process(ProcessStep::Signal(signal)))
    }

    /// Process only: writes this many bytes to stderr.
    pub fn stderr(self, bytes: usize) -> Self {
        self.step(Step::Process(ProcessStep::Stderr(bytes)))
    }

    /// Process only: starts three children that ignore SIGTERM: one in the same process group
    /// that also keeps stdout open, one in its own group, one in its own session.
    /// `$pids` holds their process ids from here on.
    pub fn fork(self) -> Self {
        self.step(Step::Process(ProcessStep::Fork))
    }

    /// WebSocket only: closes with this code and reason.
    pub fn close(self, code: u16, reason: &str) -> Self {
        self.step(Step::Close {
            code,
            reason: reason.to_owned(),
        })
    }

    /// WebSocket only: neither asks for the subprotocol nor names it.
    pub fn no_subprotocol(mut self) -> Self {
        self.websocket.no_subprotocol = true;
        self
    }

    /// WebSocket only: answers the opening handshake with this HTTP status.
    pub fn refuse_handshake(self, status: u16) -> Self {
        self.refuse_handshake_with(status, &[], "")
    }

    /// WebSocket only: answers the opening handshake with exactly this status, these headers and
    /// this body.
    pub fn refuse_handshake_with(
        mut self,
        status: u16,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Self {
        self.websocket.refuse_with = Some(Refusal {
            status,
            headers: owned(headers),
            body: body.to_owned(),
        });
        self
    }

    pub(crate) fn rule(mut self, on: Trigger) -> Self {
        self.rules.push(Rule {
            on,
            nth: None,
            run: None,
            steps: Vec::new(),
        });
        self
    }

    pub(crate) fn step(mut self, step: Step) -> Self {
        self.current().steps.push(step);
        self
    }

    fn current(&mut self) -> &mut Rule {
        self.rules
            .last_mut()
            .expect("open a rule first, with `on` or `on_start`")
    }
}

/// Headers as a script keeps them.
pub(crate) fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn notification(method: &str, params: &Template) -> String {
    let (method, params) = (Value::from(method), params.as_str());
    format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#)
}
