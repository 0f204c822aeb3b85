//! Suggestions for arguments.

use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};

const WORDS: &[&str] = &["paris", "park", "party", "test", "testing", "testValue1"];
const IDS: &[&str] = &["1", "12", "123"];

pub(crate) fn complete(params: &CompleteRequestParams) -> CompleteResult {
    let known = match &params.r#ref {
        Reference::Prompt(_) => WORDS,
        Reference::Resource(_) => IDS,
        _ => &[],
    };
    let values = known
        .iter()
        .filter(|value| value.starts_with(&params.argument.value))
        .map(|value| (*value).to_owned())
        .collect();
    CompleteResult::new(
        CompletionInfo::with_all_values(values).expect("fewer values than a completion may have"),
    )
}
