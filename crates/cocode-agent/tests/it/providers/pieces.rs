//! Wherever a stream is cut into pieces, the reply is the same.

use cocode_agent::{Delta, Reply};
use cocode_testkit::{ModelFormat, ModelTurn};
use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};
use serde_json::json;

use super::support::{FORMATS, Peer, user};

async fn ask(format: ModelFormat, piece: usize) -> (Reply, Vec<Delta>) {
    let turn = ModelTurn::new()
        .thinking("Wörter sind schön.", "signature")
        .texts(&["Grüße, ", "日本", " \u{1f600}\n\n"])
        .call("call_1", "add", &json!({"a": "ü\n", "b": [1, 2.5, null]}))
        .in_pieces(piece);
    let peer = Peer::saying(format, turn).with_tool();
    let (outcome, deltas) = peer.ask(&[user("hi")]).await;
    peer.server.assert_no_violations();
    (outcome.unwrap(), deltas)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_of_any_size_make_the_same_reply(piece in 1_usize..200, which in any::<proptest::sample::Index>()) {
        let format = FORMATS[which.index(FORMATS.len())];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let whole = runtime.block_on(ask(format, usize::MAX));
        let cut = runtime.block_on(ask(format, piece));
        prop_assert_eq!(whole, cut);
    }
}
