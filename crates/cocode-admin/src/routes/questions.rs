//! What waits for a person: entries to approve, questions of servers.

use crate::ask::Ask;
use crate::house::{Act, Decision};
use crate::model::{
    Elicitation, ElicitationAction, ElicitationReply, Elicitations, Trust, TrustDecision,
};
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::Json;
use crate::route::{Area, Route};

pub(super) fn routes() -> Vec<Route> {
    use RefusalStatus::Conflict;
    let about = |route: Route, summary| route.about(Area::Questions, summary);
    vec![
        about(
            Route::get("/api/v1/trust", "listPendingTrust", trust),
            "The entries that wait for approval, and those that were rejected.",
        ),
        about(
            Route::post_with("/api/v1/trust/{name}/approve", "approve", |ask, said| {
                decide(ask, said, Decision::Approve)
            }),
            "Approves an entry as it was shown. The answer is what still waits.",
        )
        .may_refuse(&[Conflict]),
        about(
            Route::post_with("/api/v1/trust/{name}/reject", "reject", |ask, said| {
                decide(ask, said, Decision::Reject)
            }),
            "Rejects an entry as it was shown. The answer is what still waits.",
        )
        .may_refuse(&[Conflict]),
        about(
            Route::get("/api/v1/elicitations", "listElicitations", elicitations),
            "The questions of servers that wait for an answer.",
        ),
        about(
            Route::post_with("/api/v1/elicitations/{id}", "answerElicitation", answer),
            "Answers a question of a server. The answer has to fit its form.",
        )
        .may_refuse(&[Conflict]),
    ]
}

async fn trust(ask: Ask) -> Result<Json<Trust>, Refusal> {
    let entries = ask.house().pending_trust().await?.into_iter();
    let (rejected, pending) = entries.partition(|entry| entry.is_rejected);
    Ok(Json(Trust { pending, rejected }))
}

async fn decide(ask: Ask, said: TrustDecision, decision: Decision) -> Result<Json<Trust>, Refusal> {
    let caller = ask.caller()?;
    let decided = ask
        .house()
        .decide_trust(caller, ask.name(), said.hash, decision);
    decided.await?;
    trust(ask).await
}

async fn elicitations(ask: Ask) -> Result<Json<Elicitations>, Refusal> {
    let elicitations = ask.inner.desk.inbox.pending();
    Ok(Json(Elicitations { elicitations }))
}

/// Who says yes to a call that a rule wants asked about has let it through: that is written down.
async fn answer(ask: Ask, reply: ElicitationReply) -> Result<Json<Elicitation>, Refusal> {
    let (id, inbox) = (ask.name(), &ask.inner.desk.inbox);
    let asked = inbox.pending().into_iter().find(|one| one.id == id);
    let tool = asked.as_ref().and_then(|asked| asked.tool.as_deref());
    let record = ask.house().record(&Act {
        method: match reply.action {
            ElicitationAction::Accept => "elicitations/accept",
            ElicitationAction::Decline => "elicitations/decline",
            ElicitationAction::Cancel => "elicitations/cancel",
        },
        by: Some(ask.caller()?),
        server: asked.as_ref().map(|asked| asked.server.as_str()),
        name: Some(tool.unwrap_or(id)),
    })?;
    let answered = inbox.answer(id, reply);
    record.ended(answered.is_ok());
    answered.map(Json)
}
