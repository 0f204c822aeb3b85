//! What is written through which lease.

use super::{Beginning, Entry, Through, append, begin, draft, lease};
use crate::record::{Record, Settings};
use crate::store::database::{Database, Trouble};
use crate::store::{NewConversation, StoreError};

fn beginning() -> Beginning {
    Beginning::new(NewConversation {
        owner: "ann".to_owned(),
        settings: Settings::default(),
        title: String::new(),
    })
    .unwrap()
}

#[test]
fn work_that_waits_is_not_done_once_its_lease_is_gone() {
    let mut database = Database::in_memory().unwrap();
    let id = begin(&mut database, beginning()).unwrap();
    let held = lease(&mut database, id.clone()).unwrap();
    let waiting = Through::new(&held);
    let also_waiting = Through::new(&held);
    drop(held);
    let appended = append(&mut database, waiting, Entry::new(&Record::Closed).unwrap());
    let lost = |trouble| matches!(trouble, Trouble::Told(StoreError::Lost(which)) if which == id);
    assert!(lost(appended.unwrap_err()));
    assert!(lost(draft(&mut database, also_waiting, "[]").unwrap_err()));
}
