//! Messages on their way that nobody waits for, but which closing does not cut off.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::limits::MAX_POSTS;

/// Each post must give up by itself in time. Dropping this ends them all.
#[derive(Debug)]
pub(super) struct Posts {
    tasks: Mutex<JoinSet<()>>,
    runtime: Handle,
}

impl Posts {
    /// Posts run in the runtime around this call.
    pub(super) fn new() -> Self {
        Self {
            tasks: Mutex::default(),
            runtime: Handle::current(),
        }
    }

    /// Starts a post, unless too many are under way. Needs no runtime around it.
    pub(super) fn start(&self, post: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut tasks = self.lock();
        while tasks.try_join_next().is_some() {}
        let has_room = tasks.len() < MAX_POSTS;
        if has_room {
            tasks.spawn_on(post, &self.runtime);
        }
        has_room
    }

    /// Waits until all that were started have ended.
    pub(super) async fn finish(&self) {
        let mut tasks = std::mem::take(&mut *self.lock());
        while tasks.join_next().await.is_some() {}
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::{MAX_POSTS, Posts};

    #[tokio::test]
    async fn posts_beyond_the_bound_are_refused_until_others_have_ended() {
        let posts = Posts::new();
        let gate = Arc::new(Semaphore::new(0));
        let post = || {
            let gate = Arc::clone(&gate);
            async move { gate.acquire().await.unwrap().forget() }
        };
        for _ in 0..MAX_POSTS {
            assert!(posts.start(post()));
        }
        assert!(!posts.start(post()));
        gate.add_permits(MAX_POSTS);
        posts.finish().await;
        assert_eq!(gate.available_permits(), 0);
        assert!(posts.start(post()));
    }
}
