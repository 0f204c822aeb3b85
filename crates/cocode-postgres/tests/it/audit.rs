//! The audit log in a database: one chain for all who write, and what is done to it is found.

use std::time::{Duration, SystemTime};

use cocode_access::{
    AuditEntry, AuditHead, AuditLedger as _, AuditOutcome, Finding, Place, Verifier, VerifyReport,
};
use cocode_postgres::{LedgerOptions, PostgresLedger};
use cocode_testkit::PostgresPeer;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::database;

const N_GATEWAYS: usize = 4;
const N_ROUNDS: usize = 25;
const N_AT_ONCE: usize = 3;

pub(crate) fn entry(name: &str) -> AuditEntry {
    let mut entry = AuditEntry::now("tools/call", AuditOutcome::Ok);
    entry.name = Some(name.to_owned());
    entry.arguments = Some("{\"text\":\"ünï\\u0000\\n\"}".to_owned());
    entry
}

pub(crate) fn ledger(address: &str) -> PostgresLedger {
    ledger_of(address, 1_000_000_000)
}

fn ledger_of(address: &str, max_bytes: u64) -> PostgresLedger {
    let options = LedgerOptions {
        max_bytes,
        max_age: None,
    };
    PostgresLedger::new(database(address), options)
}

async fn verified(ledger: &PostgresLedger) -> VerifyReport {
    ledger.verify(None).await.unwrap()
}

fn at(line: u64) -> Place {
    Place {
        file: "cocode.audit_lines".to_owned(),
        line,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn system_entries_of_several_gateways_are_one_chain_and_none_is_lost() {
    let peer = PostgresPeer::start();
    let address = peer.address("cocode");
    let nothing = verified(&ledger(&address)).await;
    assert!(nothing.is_intact(), "{nothing:?}");
    let mut writing = JoinSet::new();
    for gateway in 0..N_GATEWAYS {
        let ledger = ledger(&address);
        writing.spawn(async move {
            for round in 0..N_ROUNDS {
                let entries: Vec<_> = (0..N_AT_ONCE)
                    .map(|one| entry(&format!("{gateway}-{}", round * N_AT_ONCE + one)))
                    .collect();
                ledger.append(&entries).await.unwrap();
            }
        });
    }
    writing.join_all().await;
    let ledger = ledger(&address);
    let report = verified(&ledger).await;
    assert!(report.is_intact(), "{report:?}");
    let n_lines = N_GATEWAYS * N_ROUNDS * N_AT_ONCE;
    assert_eq!(report.n_lines, n_lines as u64);

    // Each writes in its own order, and what is kept is what any verifier takes.
    let lines = ledger.recent(1_000).await.unwrap();
    assert_eq!(lines.len(), n_lines);
    let mut verifier = Verifier::new(None);
    let mut next = [0; N_GATEWAYS];
    for line in lines.iter().rev() {
        verifier.line(line.text().as_bytes());
        let value: Value = serde_json::from_str(line.text()).unwrap();
        let (gateway, number) = value["name"].as_str().unwrap().split_once('-').unwrap();
        let gateway: usize = gateway.parse().unwrap();
        assert_eq!(number, next[gateway].to_string());
        next[gateway] += 1;
    }
    let report = verifier.finish();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.last, Some(lines[0].head()));
    assert_eq!(ledger.recent(2).await.unwrap(), lines[..2]);
    let known = lines[5].head();
    assert!(ledger.verify(Some(known)).await.unwrap().is_intact());

    only_the_oldest_are_removed_and_the_log_says_so(&peer).await;
    entries_older_than_the_configured_age_are_removed(&peer).await;
}

async fn entries_older_than_the_configured_age_are_removed(peer: &PostgresPeer) {
    const DAY: Duration = Duration::from_hours(24);
    peer.create_database("aged");
    let options = LedgerOptions {
        max_bytes: 1_000_000,
        max_age: Some(7 * DAY),
    };
    for days in [9, 8, 6, 0] {
        // Each process looks with its first entry.
        let ledger = PostgresLedger::new(database(&peer.address("aged")), options);
        let mut entry = entry(&format!("{days} days ago"));
        entry.at = SystemTime::now().checked_sub(days * DAY).unwrap();
        ledger.append(&[entry]).await.unwrap();
    }
    let ledger = PostgresLedger::new(database(&peer.address("aged")), options);
    let lines = ledger.recent(100).await.unwrap();
    let has = |name: &str| lines.iter().any(|line| line.text().contains(name));
    assert!(!has("9 days ago") && !has("8 days ago"), "{lines:?}");
    assert!(has("6 days ago") && has("0 days ago"), "{lines:?}");
    let report = verified(&ledger).await;
    assert!(report.is_intact(), "{report:?}");
}

async fn only_the_oldest_are_removed_and_the_log_says_so(peer: &PostgresPeer) {
    peer.create_database("short");
    let ledger = ledger_of(&peer.address("short"), 20_000);
    for number in 0..300 {
        let entries = [entry(&format!("{number}")), entry(&format!("{number}"))];
        ledger.append(&entries).await.unwrap();
    }
    let report = verified(&ledger).await;
    assert!(report.is_intact(), "{report:?}");
    let first = report.first.unwrap().seq;
    assert!(first > 300, "{report:?}");
    let removed = Finding::Retention { through: first - 1 };
    assert_eq!(report.notes, [removed]);
    let length = "SELECT (SELECT sum(octet_length(line)) FROM cocode.audit_lines), bytes
                  FROM cocode.audit_head";
    let length = peer.sql("short", length);
    let (length, noted) = length.split_once('|').unwrap();
    assert_eq!(length, noted);
    let length: u64 = length.parse().unwrap();
    assert!((10_000..22_000).contains(&length), "{length}");
}

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::too_many_lines,
    reason = "one table of what can be done to a log, and one database for all of it"
)]
async fn system_what_is_done_to_the_log_is_refused_or_found() {
    let peer = PostgresPeer::start();
    let ledger = ledger(&peer.address("cocode"));
    for number in 0..450 {
        ledger.append(&[entry(&format!("{number}"))]).await.unwrap();
    }
    let owner = |text: &str| {
        // What the owner of the tables tries.
        let text = format!(
            "SET ROLE cocode; DO $$ BEGIN {text}; EXCEPTION WHEN raise_exception THEN
             RAISE NOTICE 'refused'; RETURN; END $$; "
        );
        peer.sql("cocode", &text);
    };
    owner("UPDATE cocode.audit_lines SET line = 'x' WHERE seq = 3");
    owner("DELETE FROM cocode.audit_lines WHERE seq = 3");
    owner("TRUNCATE cocode.audit_lines");
    let report = verified(&ledger).await;
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.n_lines, 450);
    let last = report.last;

    // Somebody who can do everything does it nevertheless: each is done to a copy.
    let problems = async |name: &str, deed: &str, expected: Option<AuditHead>| {
        let copy = format!("CREATE DATABASE {name} TEMPLATE cocode OWNER cocode");
        peer.sql("cocode", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'cocode' AND pid <> pg_backend_pid()");
        peer.sql("postgres", &copy);
        peer.sql(
            name,
            &format!("SET session_replication_role = replica; {deed}"),
        );
        let ledger = crate::audit::ledger(&peer.address(name));
        let report = ledger.verify(expected).await.unwrap();
        assert!(!report.is_intact(), "{deed}");
        report.problems
    };
    let changed = "UPDATE cocode.audit_lines SET line = replace(line, 'tools/call', 'tools/list')
                   WHERE seq = 300";
    assert_eq!(
        problems("changed", changed, None).await,
        [Finding::Changed {
            place: at(300),
            seq: 300
        }]
    );
    let removed = "DELETE FROM cocode.audit_lines WHERE seq BETWEEN 200 AND 201";
    assert_eq!(
        problems("removed", removed, None).await,
        [Finding::Removed {
            place: at(200),
            from: 200,
            through: 201
        }]
    );
    let cut = "DELETE FROM cocode.audit_lines WHERE seq > 440";
    let tail_cut = Finding::TailCut {
        last: 440,
        expected: last.unwrap(),
    };
    assert_eq!(
        problems("cut", cut, None).await,
        std::slice::from_ref(&tail_cut)
    );
    let emptied = "TRUNCATE cocode.audit_lines";
    let all_cut = Finding::TailCut {
        last: 0,
        expected: last.unwrap(),
    };
    assert_eq!(problems("emptied", emptied, None).await, [all_cut]);
    let torn = "UPDATE cocode.audit_lines SET line = left(line, 20) WHERE seq = 450";
    assert_eq!(
        problems("torn", torn, None).await,
        [
            Finding::NotALine { place: at(450) },
            Finding::TailCut {
                last: 449,
                expected: last.unwrap()
            }
        ]
    );
    let swapped = "UPDATE cocode.audit_lines SET seq = -1 WHERE seq = 7;
                   UPDATE cocode.audit_lines SET seq = 7 WHERE seq = 8;
                   UPDATE cocode.audit_lines SET seq = 8 WHERE seq = -1";
    assert_eq!(
        problems("swapped", swapped, None).await,
        [Finding::OutOfOrder {
            place: at(8),
            seq: 7
        }]
    );
    // With the head set back it takes somebody who knows a line that was there.
    let set_back = "DELETE FROM cocode.audit_lines WHERE seq > 440; UPDATE cocode.audit_head SET
                    seq = 440, hash = decode((SELECT substring(line from '([0-9a-f]{64})..$') FROM cocode.audit_lines
                    WHERE seq = 440), 'hex')";
    assert_eq!(problems("set_back", set_back, last).await, [tail_cut]);
    let headless = "DELETE FROM cocode.audit_head";
    let place = Place {
        file: "cocode.audit_head".to_owned(),
        line: 1,
    };
    assert_eq!(
        problems("headless", headless, None).await,
        [Finding::BadHead { place }]
    );
    let error = crate::audit::ledger(&peer.address("headless"))
        .append(&[entry("more")])
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("cocode audit verify"), "{error}");
}
