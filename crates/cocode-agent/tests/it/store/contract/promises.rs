//! What every store of conversations promises, wherever it keeps them. The tests of another crate that
//! has a store take this file as a module, with `#[path]`, and run the same cases.

pub(crate) mod conversations;
pub(crate) mod leases;
pub(crate) mod processes;
pub(crate) mod removal;

use std::sync::Arc;
use std::time::Duration;

use cocode_agent::{
    Block, ConversationId, Lease, NewConversation, Record, Settings, Store, StoreError, Wanted,
};

/// How often is looked, and with which pause, whether something is let go that is let go in the background.
const LOOKS: u32 = 3_000;
const PAUSE: Duration = Duration::from_millis(10);

/// Somewhere that conversations are kept, which one case has for itself.
pub(crate) trait Place {
    /// Another store of what is kept here, as another process would have it.
    async fn store(&self) -> Arc<dyn Store>;

    /// Changes what is kept behind the backs of all stores.
    async fn by_hand(&self, sql: &str);

    /// How many rows a table has.
    async fn count(&self, table: &str) -> i64;

    /// Takes from all leases what they rest on, without a word to their holders.
    async fn break_leases(&self);

    /// What a process is told so that it finds the same place.
    fn address(&self) -> String;

    /// How often a process is killed here: as often as can be had in a few seconds.
    fn kills(&self) -> usize;

    /// The test of this program that does what a process is told.
    fn worker(&self) -> &'static str;
}

/// Gives all cases to a macro, so that none is forgotten.
macro_rules! every_case {
    ($with:ident) => {
        $with! {
            conversations::every_kind_of_record_comes_back_with_its_number_from_another_store,
            conversations::sums_neither_wrap_around_nor_become_nonsense,
            conversations::a_draft_is_replaced_by_the_next_and_gone_with_the_next_record,
            conversations::a_draft_that_a_record_followed_is_not_given,
            conversations::lists_begin_with_what_was_used_last,
            conversations::titles_are_cut_to_one_short_line,
            conversations::an_owner_that_is_no_name_is_refused,
            conversations::what_is_not_there_is_unknown_to_every_method,
            conversations::a_record_of_a_newer_version_is_left_out_and_nobody_goes_on,
            conversations::a_new_part_of_a_known_record_is_noticed_as_well,
            conversations::what_is_too_large_is_refused_and_leaves_nothing_behind,
            conversations::a_conversation_that_is_full_takes_no_more,
            leases::a_held_conversation_is_nobody_elses_until_it_is_let_go,
            leases::leases_of_one_store_exclude_each_other,
            leases::many_tasks_that_want_one_conversation_have_it_one_by_one,
            leases::records_that_are_added_side_by_side_all_get_a_number,
            leases::who_lost_a_lease_cannot_write_any_more,
            leases::nothing_is_done_for_a_lease_once_somebody_else_has_it,
            leases::a_lease_that_nobody_waited_for_is_let_go,
            removal::a_removed_conversation_is_gone_with_all_that_was_in_it,
            removal::purging_removes_what_is_old_and_not_held,
            removal::purging_goes_through_all_that_is_old,
            processes::nothing_is_lost_when_a_process_is_killed_at_any_moment,
            processes::eight_processes_write_their_own_conversations_at_once,
            processes::two_processes_that_want_one_conversation_have_it_in_turns,
            processes::a_killed_holder_holds_nothing_any_more,
        }
    };
}
pub(crate) use every_case;

pub(crate) fn new(title: &str) -> NewConversation {
    NewConversation {
        owner: "ann".to_owned(),
        settings: Settings {
            cwd: "/work".into(),
            ..Settings::default()
        },
        title: title.to_owned(),
    }
}

pub(crate) async fn begun(store: &dyn Store) -> ConversationId {
    store.begin(new("a title")).await.unwrap()
}

pub(crate) fn asked(text: &str) -> Record {
    Record::Asked {
        content: vec![Block::text(text)],
    }
}

/// What lists name, in their order.
pub(crate) async fn titles(store: &dyn Store, wanted: &Wanted) -> Vec<String> {
    let listed = store.list(wanted).await.unwrap();
    listed.into_iter().map(|summary| summary.title).collect()
}

pub(crate) fn all() -> Wanted {
    Wanted {
        owner: None,
        limit: 100,
        offset: 0,
    }
}

/// Takes a conversation as soon as nobody else has it.
pub(crate) async fn taken(store: &dyn Store, id: &ConversationId) -> Lease {
    for _ in 0..LOOKS {
        match store.lease(id).await {
            Ok(lease) => return lease,
            Err(StoreError::Held(_)) => tokio::time::sleep(PAUSE).await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("{id} is still held");
}

/// Waits until nobody holds a conversation.
pub(crate) async fn let_go(store: &dyn Store, id: &ConversationId) {
    for _ in 0..LOOKS {
        if !store.load(id).await.unwrap().summary.is_held {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("{id} is still held");
}
