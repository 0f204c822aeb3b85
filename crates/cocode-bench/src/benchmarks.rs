//! The benchmarks by name, and what they have in common.

mod agent;
mod call;
mod configured;
mod gateway;
mod large;
mod list;
mod manager;
mod memory;
mod persistent;
mod sandbox;
mod search;
mod start;
mod startup;
mod watched;

use tokio::runtime::Builder;

use crate::Failure;
use crate::processors::Pinned;
use crate::report::Findings;

/// One benchmark.
#[derive(Debug)]
pub(crate) struct Benchmark {
    pub(crate) name: &'static str,
    pub(crate) run: fn() -> Result<Findings, Failure>,
}

/// All of them, in the order of their run.
pub(crate) const ALL: &[Benchmark] = &[
    Benchmark {
        name: "call",
        run: call::run,
    },
    Benchmark {
        name: "list",
        run: list::run,
    },
    Benchmark {
        name: "large",
        run: large::run,
    },
    Benchmark {
        name: "persistent",
        run: persistent::run,
    },
    Benchmark {
        name: "start",
        run: start::run,
    },
    Benchmark {
        name: "manager",
        run: manager::run,
    },
    Benchmark {
        name: "startup",
        run: startup::run,
    },
    Benchmark {
        name: "configured",
        run: configured::run,
    },
    Benchmark {
        name: "gateway",
        run: gateway::run,
    },
    Benchmark {
        name: "watched",
        run: watched::run,
    },
    Benchmark {
        name: "agent",
        run: agent::run,
    },
    Benchmark {
        name: "sandbox",
        run: sandbox::run,
    },
    Benchmark {
        name: "search",
        run: search::run,
    },
    Benchmark {
        name: "memory",
        run: memory::run,
    },
];

/// The runtime under all clients alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runtime {
    /// Two worker threads.
    TwoWorkers,
    /// Two worker threads and all servers on one processor.
    OneProcessor,
    /// Everything in one thread; the servers wherever they like.
    OneThread,
}

impl Runtime {
    /// Runs a future as a task of the runtime: on the thread that waits for it, every wake-up
    /// would cross threads, which no real program does for each call.
    fn run<T: Send + 'static>(
        self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let _pinned = match self {
            Self::OneProcessor => Some(Pinned::to_one()?),
            Self::TwoWorkers | Self::OneThread => None,
        };
        let mut builder = match self {
            Self::TwoWorkers | Self::OneProcessor => Builder::new_multi_thread(),
            Self::OneThread => Builder::new_current_thread(),
        };
        let runtime = builder.worker_threads(2).enable_all().build()?;
        let task = runtime.spawn(work);
        runtime.block_on(task)?
    }
}
