//! The instruments, and what they and their attributes are called.

use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};

/// Attributes of the semantic conventions.
pub(super) mod attribute {
    pub(crate) const METHOD: &str = "mcp.method.name";
    pub(crate) const PROTOCOL_VERSION: &str = "mcp.protocol.version";
    pub(crate) const TOOL: &str = "gen_ai.tool.name";
    pub(crate) const OPERATION: &str = "gen_ai.operation.name";
    pub(crate) const ERROR_TYPE: &str = "error.type";
    pub(crate) const STATUS_CODE: &str = "rpc.response.status_code";
    pub(crate) const TRANSPORT: &str = "network.transport";
    pub(crate) const PROTOCOL: &str = "network.protocol.name";

    // What they have no name for.
    pub(crate) const SERVER: &str = "cocode.server.name";
    pub(crate) const STATE: &str = "cocode.server.state";
    pub(crate) const OUTCOME: &str = "cocode.call.outcome";
}

/// The bounds that the semantic conventions recommend, in seconds.
const DURATION_BOUNDS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// What is counted and measured.
pub(super) struct Instruments {
    pub(super) duration: Histogram<f64>,
    pub(super) calls: Counter<u64>,
    pub(super) active: UpDownCounter<i64>,
    pub(super) servers: UpDownCounter<i64>,
    pub(super) reconnects: Counter<u64>,
    pub(super) relists: Counter<u64>,
}

impl Instruments {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            duration: meter
                .f64_histogram("mcp.client.operation.duration")
                .with_unit("s")
                .with_description("The time from a call to its outcome.")
                .with_boundaries(DURATION_BOUNDS.to_vec())
                .build(),
            calls: meter
                .u64_counter("cocode.call.count")
                .with_unit("{call}")
                .with_description("Calls that have ended.")
                .build(),
            active: meter
                .i64_up_down_counter("cocode.call.active")
                .with_unit("{call}")
                .with_description("Calls that have not ended yet.")
                .build(),
            servers: meter
                .i64_up_down_counter("cocode.server.count")
                .with_unit("{server}")
                .with_description("Servers in each state.")
                .build(),
            reconnects: meter
                .u64_counter("cocode.server.reconnects")
                .with_unit("{reconnect}")
                .with_description("Connections that were made again.")
                .build(),
            relists: meter
                .u64_counter("cocode.server.relists")
                .with_unit("{list}")
                .with_description("Lists that were asked for again.")
                .build(),
        }
    }
}
