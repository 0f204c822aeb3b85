//! Who has to go, and when, without any connection.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::{Guests, Length, MAX_REMEMBERED_EVICTIONS, Stay, Visitor};
use crate::serve::http::guest::Guest;
use crate::serve::session_store::Whose;

fn all_of(guest: &str) -> Whose {
    Whose::Guest(guest.to_owned())
}

fn visitor(guests: &Guests, guest: Guest) -> Visitor {
    guests.now().let_in(Some(guest))
}

async fn is_over(stay: &mut Stay) -> bool {
    poll_fn(|context| std::task::Poll::Ready(stay.poll_over(context).is_ready())).await
}

#[tokio::test]
async fn an_eviction_ends_what_its_guest_has_open_and_nothing_else() {
    let guests = Arc::<Guests>::default();
    let (ann, bob) = (Guest::new("ann"), Guest::new("bob"));
    let mut anns = guests
        .open(&visitor(&guests, ann.clone()), Length::Answer)
        .unwrap();
    let mut bobs = guests
        .open(&visitor(&guests, bob), Length::Standing)
        .unwrap();
    assert!(!is_over(&mut anns).await);
    guests.evict(Some(&all_of("ann")));
    assert!(is_over(&mut anns).await);
    assert!(!is_over(&mut bobs).await);
    // Whoever lets the guest in again may do so.
    let mut again = guests
        .open(&visitor(&guests, ann), Length::Standing)
        .unwrap();
    assert!(!is_over(&mut again).await);
}

#[tokio::test]
async fn who_was_let_in_before_an_eviction_opens_nothing_after_it() {
    let guests = Arc::<Guests>::default();
    let ann = visitor(&guests, Guest::new("ann"));
    let bob = visitor(&guests, Guest::new("bob"));
    guests.evict(Some(&all_of("ann")));
    guests.evict(Some(&all_of("carol")));
    assert!(guests.has_evicted(&ann));
    assert!(!guests.has_evicted(&bob));
    let mut late = guests.open_socket(&ann, None, Arc::default());
    assert!(is_over(&mut late).await);
    let mut fine = guests.open_socket(&bob, None, Arc::default());
    assert!(!is_over(&mut fine).await);
}

#[test]
fn what_is_forgotten_of_evictions_counts_against_those_who_came_before() {
    let guests = Guests::default();
    let early = visitor(&guests, Guest::new("ann"));
    guests.evict(Some(&all_of("bob")));
    let later = visitor(&guests, Guest::new("ann"));
    for _ in 0..MAX_REMEMBERED_EVICTIONS {
        assert!(!guests.has_evicted(&early));
        guests.evict(Some(&all_of("bob")));
    }
    assert!(guests.has_evicted(&early));
    assert!(!guests.has_evicted(&later));
}

#[tokio::test(start_paused = true)]
async fn what_stands_ends_with_the_time_of_its_guest_and_answers_do_not() {
    let guests = Arc::<Guests>::default();
    let hour = Duration::from_hours(1);
    let brief = visitor(&guests, Guest::new("ann").until(SystemTime::now() + hour));
    let mut answer = guests.open(&brief, Length::Answer).unwrap();
    let mut stream = guests.open(&brief, Length::Standing).unwrap();
    let begun = Instant::now();
    poll_fn(|context| stream.poll_over(context)).await;
    let lasted = begun.elapsed();
    assert!(
        lasted > Duration::from_mins(59) && lasted <= hour,
        "{lasted:?}"
    );
    assert!(!is_over(&mut answer).await);
    let gone = visitor(&guests, Guest::new("bob").until(SystemTime::UNIX_EPOCH));
    let mut gone = guests.open(&gone, Length::Standing).unwrap();
    poll_fn(|context| gone.poll_over(context)).await;
}

#[tokio::test]
async fn sockets_are_told_of_while_they_are_open() {
    let guests = Arc::<Guests>::default();
    let nobody = guests.now().let_in(None);
    assert!(guests.open(&nobody, Length::Answer).is_none());
    let stay = guests.open_socket(&nobody, Some("files".to_owned()), Arc::default());
    let sockets = guests.sockets();
    assert_eq!(sockets.len(), 1);
    assert_eq!(sockets[0].endpoint.as_deref(), Some("files"));
    assert_eq!(sockets[0].guest, None);
    drop(stay);
    assert!(guests.sockets().is_empty());
}

#[tokio::test]
async fn everybody_can_be_sent_away_but_nobody_in_particular() {
    let guests = Arc::<Guests>::default();
    let early = visitor(&guests, Guest::new("ann"));
    let mut bobs = guests
        .open(&visitor(&guests, Guest::new("bob")), Length::Standing)
        .unwrap();
    let nobody = guests.now().let_in(None);
    let mut nobodys = guests.open_socket(&nobody, None, Arc::default());
    guests.evict(None);
    assert!(is_over(&mut bobs).await);
    assert!(!is_over(&mut nobodys).await);
    assert!(guests.has_evicted(&early) && !guests.has_evicted(&nobody));
    assert!(!guests.has_evicted(&visitor(&guests, Guest::new("ann"))));
}

#[tokio::test]
async fn those_who_are_no_guests_can_be_sent_away() {
    let guests = Arc::<Guests>::default();
    let nobody = guests.now().let_in(None);
    let ann = visitor(&guests, Guest::new("ann"));
    let mut socket = guests.open_socket(&nobody, None, Arc::default());
    let mut stream = guests.open(&nobody, Length::Standing).unwrap();
    let mut anns = guests.open(&ann, Length::Standing).unwrap();
    // Others go, and they stay.
    for _ in 0..=MAX_REMEMBERED_EVICTIONS {
        guests.evict(Some(&all_of("bob")));
    }
    assert!(!guests.has_evicted(&nobody) && !is_over(&mut stream).await);
    guests.evict(Some(&Whose::Strangers));
    assert!(is_over(&mut socket).await && is_over(&mut stream).await);
    assert!(!is_over(&mut anns).await);
    assert!(guests.has_evicted(&nobody));
    let mut late = guests.open_socket(&nobody, None, Arc::default());
    assert!(is_over(&mut late).await);
    assert!(!guests.has_evicted(&guests.now().let_in(None)));
    assert!(!guests.has_evicted(&visitor(&guests, Guest::new("ann"))));
}

#[tokio::test]
async fn a_credential_takes_only_what_was_opened_with_it() {
    let guests = Arc::<Guests>::default();
    let with = |by: &str| visitor(&guests, Guest::new("ann").by(by));
    let (old, new) = (with("old"), with("new"));
    assert_eq!(old, new, "one guest");
    let mut with_old = guests.open(&old, Length::Standing).unwrap();
    let mut with_new = guests.open_socket(&new, None, Arc::default());
    let mut with_none = guests
        .open(&visitor(&guests, Guest::new("ann")), Length::Standing)
        .unwrap();
    guests.evict(Some(&Whose::Credential {
        guest: "ann".into(),
        credential: "old".into(),
    }));
    assert!(is_over(&mut with_old).await);
    assert!(!is_over(&mut with_new).await && !is_over(&mut with_none).await);
    assert!(guests.has_evicted(&old) && !guests.has_evicted(&new));
    // What was begun with the old one ends with it, whoever goes on with it.
    assert!(guests.has_evicted(&new.begun_with(Some("old".into()))));
    assert!(!guests.has_evicted(&old.begun_with(None)));
}

#[test]
fn seats_are_counted_for_each_guest_and_free_when_nothing_holds_them() {
    let guests = Arc::<Guests>::default();
    let ann = || visitor(&guests, Guest::new("ann"));
    let first = guests.seat(ann(), 2).unwrap();
    let second = guests.seat(ann(), 2).unwrap();
    assert!(guests.seat(ann(), 2).is_none());
    assert!(
        guests
            .seat(visitor(&guests, Guest::new("bob")), 1)
            .is_some()
    );
    assert!(
        guests
            .seat(visitor(&guests, Guest::new("carol")), 0)
            .is_none()
    );
    assert!(guests.seat(guests.now().let_in(None), 0).is_some());
    // What was opened for a visitor holds the seat.
    let stay = guests.open(&second, Length::Standing);
    drop((first, second));
    let third = guests.seat(ann(), 2).unwrap();
    assert!(guests.seat(ann(), 2).is_none());
    drop((stay, third));
    assert!(guests.book().seats.is_empty());
}
