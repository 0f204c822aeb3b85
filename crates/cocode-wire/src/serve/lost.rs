//! Requests whose server is gone: which of them may be made again, and what their clients are told.

use crate::raw::RawJson;
use crate::rpc_error::{RpcError, code};

/// What a client is told about a request that nobody will answer.
const LOST: &str = "the gateway that worked on this is gone, and it is not known whether it was \
                    carried out; what follows is served again";

/// What tells this from other errors: `data.code` of it.
pub const GATEWAY_LOST: &str = "gateway-lost";

/// Whether a request of that method changes nothing, so that another server can be asked as well
/// without anybody noticing.
pub fn only_reads(method: &[u8]) -> bool {
    matches!(
        method,
        b"ping"
            | b"server/discover"
            | b"tools/list"
            | b"prompts/list"
            | b"prompts/get"
            | b"resources/list"
            | b"resources/templates/list"
            | b"resources/read"
            | b"completion/complete"
    )
}

/// The answer to a request that another gateway worked on.
pub(super) fn gateway_lost() -> RpcError {
    RpcError {
        code: code::INTERNAL_ERROR,
        message: LOST.into(),
        data: RawJson::of(&serde_json::json!({ "code": GATEWAY_LOST })).ok(),
    }
}
