//! Tests of writing files whole: nothing half done, nothing of others overwritten, nothing left.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::watch;

use super::house_tests::{House, RESOLVERS};
use super::{Inside, Kept, Missing, Place, Root, replace};
use crate::job::Job;
use crate::refusal::Refusal;

fn job(is_canceled: bool) -> Job {
    Job::new(
        Arc::new(AtomicBool::new(is_canceled)),
        watch::Sender::default(),
    )
}

struct Looked {
    house: House,
    path: Inside,
    place: Place,
    kept: Option<Kept>,
}

/// Looks at a file that is to be replaced; the file exists if it has content.
fn look(content: Option<&str>, resolver: super::Resolver) -> Looked {
    let house = House::new(resolver);
    if let Some(content) = content {
        house.file("file.txt", content);
    }
    let root = Root::open(&house.inside(""), resolver).unwrap();
    let path = root.inside("file.txt").unwrap();
    let place = root.locate(&path, Missing::DirectoriesMade).unwrap();
    let kept = Kept::look(&place, &path).unwrap();
    Looked {
        house,
        path,
        place,
        kept,
    }
}

impl Looked {
    fn replace(&self, is_canceled: bool) -> Result<(), Refusal> {
        let job = job(is_canceled);
        replace(&self.place, &self.path, self.kept.as_ref(), b"new", &job)
    }

    /// What is in the file, and nothing is beside it.
    fn content(&self) -> Option<String> {
        let names: Vec<_> = fs::read_dir(self.house.inside(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(names.iter().all(|name| name == "file.txt"), "{names:?}");
        fs::read_to_string(self.house.inside("file.txt")).ok()
    }
}

#[test]
fn a_call_that_nobody_waits_for_changes_nothing() {
    for resolver in RESOLVERS {
        for content in [None, Some("old")] {
            let looked = look(content, resolver);
            looked.replace(true).unwrap_err();
            assert_eq!(looked.content().as_deref(), content);
        }
    }
}

#[test]
fn what_others_wrote_meanwhile_is_not_overwritten() {
    for resolver in RESOLVERS {
        for content in [None, Some("old")] {
            let looked = look(content, resolver);
            fs::write(looked.house.inside("file.txt"), "of somebody else").unwrap();
            let refusal = looked.replace(false).unwrap_err().to_string();
            assert_eq!(
                refusal,
                "`file.txt` was changed by somebody else at the same time, and was left as it is"
            );
            assert_eq!(looked.content().as_deref(), Some("of somebody else"));
        }
    }
}

#[test]
fn what_others_removed_meanwhile_is_not_made_again() {
    for resolver in RESOLVERS {
        let looked = look(Some("old"), resolver);
        fs::remove_file(looked.house.inside("file.txt")).unwrap();
        looked.replace(false).unwrap_err();
        assert_eq!(looked.content(), None);
    }
}

#[test]
fn what_stayed_as_it_was_is_replaced() {
    for resolver in RESOLVERS {
        for content in [None, Some("old")] {
            let looked = look(content, resolver);
            looked.replace(false).unwrap();
            assert_eq!(looked.content().as_deref(), Some("new"));
        }
    }
}
