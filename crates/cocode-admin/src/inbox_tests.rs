//! Tests of the inbox: who hears what, answers that do not fit, time and number.

use std::time::Duration;

use cocode_wire::RawJson;

use super::{Inbox, LONGEST_WAIT, MAX_QUESTIONS, MAX_SETTLED, Question, QuestionKind, Reply};
use crate::bulletin::Bulletin;
use crate::model::{
    ConsentArgument, ConsentCall, Elicitation, ElicitationAction, ElicitationKind,
    ElicitationReply, ElicitationState,
};
use crate::refusal::{Refusal, RefusalStatus};

const WAIT: Duration = Duration::from_mins(1);

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

fn question() -> Question {
    let schema = r#"{"type":"object","required":["age"],"properties":{
        "age":{"type":"integer","minimum":0},"name":{"type":"string","default":"Ada"}}}"#;
    Question {
        server: "files".to_owned(),
        principal: Some("ana".to_owned()),
        tool: None,
        message: "How old?".to_owned(),
        consent: None,
        kind: QuestionKind::Form(raw(schema)),
    }
}

fn reply(action: ElicitationAction, content: Option<&str>) -> ElicitationReply {
    ElicitationReply {
        action,
        content: content.map(raw),
    }
}

fn accept(content: &str) -> ElicitationReply {
    reply(ElicitationAction::Accept, Some(content))
}

fn only(inbox: &Inbox) -> Elicitation {
    let mut pending = inbox.pending();
    assert_eq!(pending.len(), 1);
    pending.remove(0)
}

fn refused(outcome: Result<Elicitation, Refusal>) -> (RefusalStatus, String) {
    let refusal = outcome.unwrap_err();
    (refusal.status, refusal.code)
}

#[tokio::test(start_paused = true)]
async fn whoever_is_asked_sees_whose_question_it_is_and_what_would_be_allowed() {
    let inbox = Inbox::new(Bulletin::new());
    let call = ConsentCall {
        client: None,
        arguments: vec![ConsentArgument {
            name: "path".to_owned(),
            value: r#""/etc""#.to_owned(),
        }],
        reason: None,
    };
    let _of_a_rule = inbox
        .ask(
            Question {
                consent: Some(call.clone()),
                kind: QuestionKind::Form(raw("{}")),
                ..question()
            },
            WAIT,
        )
        .unwrap();
    let _of_a_server = inbox.ask(question(), WAIT).unwrap();
    let pending = inbox.pending();
    let told = pending.iter().map(|one| (one.kind, one.consent.clone()));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            (ElicitationKind::Consent, Some(call)),
            (ElicitationKind::Elicitation, None)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_fits_reaches_whoever_asked_and_no_other_follows() {
    let inbox = Inbox::new(Bulletin::new());
    let asked = inbox.ask(question(), WAIT).unwrap();
    let id = only(&inbox).id;
    let unfit = inbox.answer(&id, accept(r#"{"age":-1}"#)).unwrap_err();
    assert_eq!(unfit.status, RefusalStatus::Unfit);
    assert!(unfit.hints[0].contains("`age`"), "{unfit:?}");
    assert_eq!(
        refused(inbox.answer(&id, reply(ElicitationAction::Accept, None))).0,
        RefusalStatus::Unfit
    );
    assert_eq!(
        refused(inbox.answer(&id, reply(ElicitationAction::Decline, Some("{}")))).1,
        "content-unwanted"
    );
    let answered = inbox.answer(&id, accept(r#"{"age":3}"#)).unwrap();
    assert_eq!(answered.state, ElicitationState::Answered);
    assert_eq!(inbox.pending(), []);
    let expected = Reply::Accept(Some(raw(r#"{"age":3,"name":"Ada"}"#)));
    assert_eq!(asked.reply().await, expected);
    let again = refused(inbox.answer(&id, accept(r#"{"age":3}"#)));
    assert_eq!(again.0, RefusalStatus::Conflict);
    assert_eq!(again.1, "elicitation-answered");
    let never = refused(inbox.answer("never", accept("{}")));
    assert_eq!(never.0, RefusalStatus::Unknown);
}

#[tokio::test(start_paused = true)]
async fn no_is_an_answer() {
    let inbox = Inbox::new(Bulletin::new());
    for (action, expected) in [
        (ElicitationAction::Decline, Reply::Decline),
        (ElicitationAction::Cancel, Reply::Cancel),
    ] {
        let asked = inbox.ask(question(), WAIT).unwrap();
        let id = only(&inbox).id;
        inbox.answer(&id, reply(action, None)).unwrap();
        assert_eq!(asked.reply().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_is_visited_and_not_filled_in() {
    let inbox = Inbox::new(Bulletin::new());
    let kind = QuestionKind::Url("https://example.com/pay".to_owned());
    let visit = Question { kind, ..question() };
    let asked = inbox.ask(visit, WAIT).unwrap();
    let id = only(&inbox).id;
    assert_eq!(
        refused(inbox.answer(&id, accept("{}"))).1,
        "content-unwanted"
    );
    inbox
        .answer(&id, reply(ElicitationAction::Accept, None))
        .unwrap();
    assert_eq!(asked.reply().await, Reply::Accept(None));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_expires_for_both_sides() {
    let bulletin = Bulletin::new();
    let inbox = Inbox::new(bulletin.clone());
    let mut listener = bulletin.listen(None).unwrap();
    let asked = inbox.ask(question(), WAIT).unwrap();
    let id = only(&inbox).id;
    tokio::time::advance(WAIT).await;
    assert_eq!(inbox.pending(), []);
    let late = refused(inbox.answer(&id, accept(r#"{"age":3}"#)));
    assert_eq!(late.1, "elicitation-expired");
    assert_eq!(asked.reply().await, Reply::Expired);
    let late = refused(inbox.answer(&id, accept(r#"{"age":3}"#)));
    assert_eq!(
        late,
        (RefusalStatus::Conflict, "elicitation-expired".to_owned())
    );
    let told = String::from_utf8(listener.take().unwrap().to_vec()).unwrap();
    assert_eq!(told.matches("event: elicitation").count(), 2);
    assert!(told.contains("\"state\":\"expired\""), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_taken_back_cannot_be_answered() {
    let inbox = Inbox::new(Bulletin::new());
    let asked = inbox.ask(question(), WAIT).unwrap();
    let id = only(&inbox).id;
    drop(asked);
    assert_eq!(inbox.pending(), []);
    assert_eq!(
        refused(inbox.answer(&id, accept("{}"))).1,
        "elicitation-expired"
    );
}

#[tokio::test(start_paused = true)]
async fn the_inbox_is_bounded_in_number_and_time() {
    let inbox = Inbox::new(Bulletin::new());
    let all: Vec<_> = (0..MAX_QUESTIONS)
        .map(|_| inbox.ask(question(), Duration::MAX).unwrap())
        .collect();
    let full = inbox.ask(question(), WAIT).unwrap_err();
    assert_eq!(full.status, RefusalStatus::Unavailable);
    assert_eq!(inbox.pending().len(), MAX_QUESTIONS);
    tokio::time::advance(LONGEST_WAIT).await;
    assert_eq!(inbox.pending(), []);
    drop(all);
    let id = {
        let _asked = inbox.ask(question(), WAIT).unwrap();
        only(&inbox).id
    };
    assert_eq!(
        refused(inbox.answer(&id, accept("{}"))).0,
        RefusalStatus::Conflict
    );
    for _ in 0..MAX_SETTLED {
        drop(inbox.ask(question(), WAIT).unwrap());
    }
    assert_eq!(
        refused(inbox.answer(&id, accept("{}"))).0,
        RefusalStatus::Unknown
    );
}

#[tokio::test(start_paused = true)]
async fn a_schema_of_no_use_lets_any_form_pass() {
    let inbox = Inbox::new(Bulletin::new());
    let kind = QuestionKind::Form(raw(r#"{"$schema":"urn:none","properties":[]}"#));
    let asked = inbox.ask(Question { kind, ..question() }, WAIT).unwrap();
    let id = only(&inbox).id;
    inbox.answer(&id, accept(r#"{"a":1}"#)).unwrap();
    assert_eq!(asked.reply().await, Reply::Accept(Some(raw(r#"{"a":1}"#))));
}
