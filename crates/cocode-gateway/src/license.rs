//! How many servers run for single clients: each is a process, and one client can open many sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_core::ServerName;
use cocode_wire::{RpcError, code};

/// The servers of a view that run for single clients, by name.
#[derive(Debug, Default)]
pub(crate) struct Licenses(Arc<Mutex<BTreeMap<ServerName, usize>>>);

/// Allows one of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct License {
    taken: Arc<Mutex<BTreeMap<ServerName, usize>>>,
    name: ServerName,
}

impl Licenses {
    /// Allows one more, unless there are so many.
    pub(crate) fn take(&self, name: &ServerName, most: usize) -> Result<License, RpcError> {
        let mut taken = lock(&self.0);
        let count = taken.get(name).copied().unwrap_or_default();
        if count >= most {
            let what = format!(
                "server `{name}` runs for each session by itself, and runs {count} times for you, which is \
                 the most: end a session first"
            );
            return Err(RpcError::new(code::INTERNAL_ERROR, what));
        }
        taken.insert(name.clone(), count + 1);
        Ok(License {
            taken: Arc::clone(&self.0),
            name: name.clone(),
        })
    }
}

impl Drop for License {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        match taken.get_mut(&self.name) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                taken.remove(&self.name);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::Licenses;

    #[test]
    fn licenses_are_counted_by_name_and_come_back() {
        let licenses = Licenses::default();
        let (one, other) = ("one".parse().unwrap(), "other".parse().unwrap());
        let first = licenses.take(&one, 2).unwrap();
        let second = licenses.take(&one, 2).unwrap();
        let refused = licenses.take(&one, 2).unwrap_err();
        assert!(refused.message.contains("server `one`"), "{refused:?}");
        assert!(licenses.take(&other, 2).is_ok());
        drop(first);
        let third = licenses.take(&one, 2).unwrap();
        drop((second, third));
        assert!(licenses.0.lock().unwrap().is_empty());
    }
}
