//! All servers that run for more than one client: equal ones run once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cocode_client::ManagerOptions;
use cocode_core::ServerSpec;
use tokio::sync::Semaphore;

use crate::instance::{Instance, Reaper};

/// What makes two servers the same.
pub(crate) type Key = Vec<String>;

/// The servers that run, by what makes them the same. They run for as long as somebody holds them.
#[derive(Debug)]
pub(crate) struct Instances {
    running: Mutex<HashMap<Key, Weak<Instance>>>,
    /// Lets one start through at a time: nobody starts what somebody else is just starting.
    starting: Semaphore,
}

impl Instances {
    pub(crate) fn new() -> Self {
        Self {
            running: Mutex::default(),
            starting: Semaphore::new(1),
        }
    }

    /// The server that is like this one, started if it does not run. One without a key is like no
    /// other.
    pub(crate) async fn lease(
        &self,
        key: Option<Key>,
        spec: &ServerSpec,
        options: &ManagerOptions,
        reaper: &Reaper,
    ) -> Arc<Instance> {
        // Filters and the like are for those who look at the server.
        let spec = ServerSpec {
            tools: cocode_core::ToolFilter::default(),
            ..spec.clone()
        };
        let Some(key) = key else {
            return Instance::start(spec, options, None, reaper).await;
        };
        // The semaphore is never closed.
        let _one_at_a_time = self.starting.acquire().await.ok();
        if let Some(running) = self.find(&key) {
            return running;
        }
        let started = Instance::start(spec, options, None, reaper).await;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, instance| instance.strong_count() > 0);
        running.insert(key, Arc::downgrade(&started));
        started
    }

    fn find(&self, key: &Key) -> Option<Arc<Instance>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(key)?.upgrade()
    }
}
