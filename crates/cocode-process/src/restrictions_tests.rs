//! Who may be served by whom, and what is read of a process.

use super::Restrictions;

fn restrictions(no_new_privileges: bool, filters: u32) -> Restrictions {
    Restrictions {
        no_new_privileges,
        filters,
        ..Restrictions::read(b"", b"", b"")
    }
}

#[test]
fn a_process_serves_those_that_are_no_more_restricted() {
    // Ours, theirs.
    for (own, other) in [
        ((false, 0), (false, 0)),
        // In a container.
        ((false, 1), (false, 1)),
        ((true, 1), (true, 1)),
        // A service, with the shell of an administrator and with its own programs.
        ((true, 6), (false, 0)),
        ((true, 6), (true, 6)),
        // A daemon that was started by an agent, and another agent of that kind.
        ((true, 0), (false, 0)),
        // In a terminal of an editor.
        ((false, 0), (true, 0)),
        ((true, 0), (true, 0)),
    ] {
        let may = restrictions(own.0, own.1).may_serve(restrictions(other.0, other.1));
        assert!(may, "{own:?} {other:?}");
    }
}

#[test]
fn a_process_does_not_serve_those_that_are_more_restricted() {
    for (own, other) in [
        ((false, 0), (true, 1)),
        ((false, 0), (false, 1)),
        // In a container.
        ((false, 1), (true, 2)),
        ((true, 1), (true, 2)),
        // A service, with a program that it confines, and with one that is confined elsewhere.
        ((true, 6), (true, 7)),
        ((true, 6), (true, 1)),
    ] {
        let may = restrictions(own.0, own.1).may_serve(restrictions(other.0, other.1));
        assert!(!may, "{own:?} {other:?}");
    }
}

#[test]
fn restrictions_are_read_beside_names_that_are_no_text() {
    let status = b"Name:\t\xff\xc3\nSeccomp_filters_x:\t9\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n";
    assert_eq!(Restrictions::read(status, b"", b""), restrictions(true, 3));
    let older = b"Name:\tsh\nNoNewPrivs:\t0\nSeccomp:\t2\n";
    assert_eq!(Restrictions::read(older, b"", b""), restrictions(false, 2));
    assert_eq!(
        Restrictions::read(b"Name:\tsh\n", b"", b""),
        restrictions(false, 0)
    );
}

#[test]
fn marked_process_is_refused_whatever_the_filter_counts() {
    let marked = |filters| Restrictions {
        is_sandboxed: true,
        ..restrictions(true, filters)
    };
    // A daemon under a service manager has as many filters as the sandbox sets, or more.
    for own in [(false, 0), (true, 1), (true, 6)] {
        assert!(!restrictions(own.0, own.1).may_serve(marked(1)), "{own:?}");
    }
    assert!(marked(1).may_serve(marked(1)));
    assert!(!marked(1).may_serve(marked(2)));
    assert!(marked(1).may_serve(restrictions(false, 0)));
}

#[test]
fn mark_is_read_from_hard_limit_for_message_queues() {
    let limits = |line: &str| {
        let text =
            format!("Limit  Soft Limit  Hard Limit  Units\n{line}\nMax nice priority  0  0\n");
        Restrictions::read(b"Name:\tsh\n", text.as_bytes(), b"").is_sandboxed
    };
    assert!(limits(
        "Max msgqueue size         0                    0                    bytes"
    ));
    assert!(!limits(
        "Max msgqueue size         819200               819200               bytes"
    ));
    assert!(!limits(
        "Max msgqueue size         0                    819200               bytes"
    ));
    assert!(!limits(
        "Max msgqueue size         unlimited            unlimited            bytes"
    ));
    assert!(!limits(
        "Max file size             0                    0                    bytes"
    ));
}

#[test]
fn process_in_other_namespaces_is_not_served() {
    let with = |status: &[u8], id_maps: &[u8]| Restrictions::read(status, b"", id_maps);
    let own = with(b"NSpid:\t7\n", b"0 0 4294967295\n");
    assert!(own.may_serve(with(b"NSpid:\t9\n", b"0 0 4294967295\n")));
    assert!(!own.may_serve(with(b"NSpid:\t9\n", b"0 1000 1\n")));
    assert!(!own.may_serve(with(b"NSpid:\t9\t1\n", b"0 0 4294967295\n")));
}
