//! Many processes with one place, some of which are killed.
//!
//! A process is this program again, started for one test, which finds in a variable what it is to do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use cocode_agent::{Block, ConversationId, Record, Store, StoreError, text_of};

use super::{Place, all, asked, begun, let_go, taken};

/// A process is killed when it has said at most so many numbers.
const MOST_NUMBERS: usize = 30;
/// A number that no process reaches.
const FOREVER: u64 = 1_000_000;
/// The variable with what a process is to do.
const ORDER: &str = "COCODE_TEST_STORE_ORDER";
/// What comes before what is said: the harness of tests writes as well.
const MARK: &str = "say: ";

/// Another process.
struct Other {
    child: Child,
    /// It does not end before this does.
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Other {
    /// Starts a process that does something to a conversation, so often.
    #[expect(
        clippy::disallowed_methods,
        reason = "it is to be killed without a guard that would tidy up"
    )]
    fn start(place: &impl Place, verb: &str, id: &ConversationId, times: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", place.worker()])
            .args(["--nocapture", "--test-threads=1"])
            .env(ORDER, format!("{verb} {id} {times} {}", place.address()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
        }
    }

    /// What it says next. Half a line is what it was about to say when it was killed.
    fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let line = line.strip_suffix('\n')?;
            if let Some((_, said)) = line.split_once(MARK) {
                return Some(said.to_owned());
            }
        }
    }

    fn hear_number(&mut self) -> Option<u64> {
        self.hear().map(|said| said.parse().unwrap())
    }

    /// Kills it, and gives the last number that it still said.
    fn kill(mut self) -> Option<u64> {
        self.child.kill().unwrap();
        let last = std::iter::from_fn(|| self.hear_number()).last();
        self.child.wait().unwrap();
        last
    }

    fn finish(mut self) {
        drop(self.input);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
    }
}

fn say(what: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{MARK}{what}").unwrap();
    stdout.flush().unwrap();
}

/// What this process was told to do, if it was started to be killed.
pub(crate) struct Order {
    verb: String,
    id: ConversationId,
    times: u64,
    /// Where.
    pub(crate) address: String,
}

impl Order {
    #[expect(clippy::disallowed_methods, reason = "it is set by these very tests")]
    pub(crate) fn given() -> Option<Self> {
        let order = std::env::var(ORDER).ok()?;
        let words: Vec<_> = order.splitn(4, ' ').collect();
        let [verb, id, times, address] = words.as_slice() else {
            panic!("{order}");
        };
        Some(Self {
            verb: (*verb).to_owned(),
            id: id.parse().unwrap(),
            times: times.parse().unwrap(),
            address: (*address).to_owned(),
        })
    }

    pub(crate) async fn obey(self, store: &dyn Store) {
        let Self {
            verb, id, times, ..
        } = &self;
        match verb.as_str() {
            "append" => append(store, id, *times).await,
            "contend" => contend(store, id, *times).await,
            "hold" => hold(store, id).await,
            other => panic!("{other}"),
        }
    }
}

/// What a process does that nobody has told anything: the same, without anybody who might kill it.
pub(crate) async fn without_an_order(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    append(&*store, &id, 3).await;
    contend(&*store, &id, 3).await;
    assert_eq!(contiguous(&*store, &id).await, 6);
}

/// Appends records as fast as it can, with drafts in between, and says the number of each.
async fn append(store: &dyn Store, id: &ConversationId, times: u64) {
    let lease = store.lease(id).await.unwrap();
    for _ in 0..times {
        store.draft(&lease, &[Block::text("so far")]).await.unwrap();
        let text = "x".repeat(fastrand::usize(..3000));
        let number = store.append(&lease, &asked(&text)).await.unwrap();
        say(&number.to_string());
    }
}

/// Takes the conversation again and again, for one record each time.
async fn contend(store: &dyn Store, id: &ConversationId, times: u64) {
    let mut done = 0;
    while done < times {
        match store.lease(id).await {
            Ok(lease) => {
                let known = store.load(id).await.unwrap().records.len();
                let record = asked(&format!("after {known}"));
                store.append(&lease, &record).await.unwrap();
                done += 1;
            }
            Err(StoreError::Held(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Takes the conversation, if it is free, until the input ends.
async fn hold(store: &dyn Store, id: &ConversationId) {
    let lease = store.lease(id).await;
    say(match &lease {
        Ok(_) => "held",
        Err(StoreError::Held(_)) => "refused",
        Err(StoreError::Unknown(_)) => "unknown",
        Err(error) => panic!("{error}"),
    });
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    drop(lease);
}

/// The numbers of all records of a conversation, which must follow each other.
async fn contiguous(store: &dyn Store, id: &ConversationId) -> u64 {
    let stored = store.load(id).await.unwrap();
    stored.whole().unwrap();
    let count = u64::try_from(stored.records.len()).unwrap();
    let numbers = stored.records.iter().map(|(number, _)| *number);
    assert!(numbers.eq(1..=count), "there are gaps");
    count
}

pub(crate) async fn nothing_is_lost_when_a_process_is_killed_at_any_moment(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let mut known = 0;
    for round in 0..place.kills() {
        let mut other = Other::start(place, "append", &id, FOREVER);
        let mut heard = 0;
        for _ in 0..fastrand::usize(1..=MOST_NUMBERS) {
            heard = other.hear_number().unwrap();
        }
        // Anywhere in the middle of what comes next.
        for _ in 0..fastrand::u32(..20_000) {
            std::hint::spin_loop();
        }
        heard = other.kill().unwrap_or(heard);
        assert!(heard > known, "round {round}: {heard} after {known}");
        // What was on its way is there or will never be, once it is known that nobody holds it.
        let lease = taken(&*store, &id).await;
        let there = contiguous(&*store, &id).await;
        assert!(
            there == heard || there == heard + 1,
            "round {round}: {there} are there, {heard} were told"
        );
        let summary = &store.list(&all()).await.unwrap()[0];
        assert_eq!(summary.turns, there);
        known = store.append(&lease, &asked("go on")).await.unwrap();
        assert_eq!(known, there + 1);
        drop(lease);
        let_go(&*store, &id).await;
    }
}

pub(crate) async fn eight_processes_write_their_own_conversations_at_once(place: &impl Place) {
    // Nobody has made the place before: they do it at the same time.
    let others: Vec<_> = (0..8)
        .map(|_| {
            let id = ConversationId::random().unwrap();
            Other::start(place, "hold", &id, 0)
        })
        .collect();
    for mut other in others {
        assert_eq!(other.hear().unwrap(), "unknown");
        other.finish();
    }
    let store = place.store().await;
    let mut others = Vec::new();
    for _ in 0..8 {
        let id = begun(&*store).await;
        others.push((Other::start(place, "append", &id, 40), id));
    }
    for (other, id) in others {
        other.finish();
        assert_eq!(contiguous(&*store, &id).await, 40);
    }
}

pub(crate) async fn two_processes_that_want_one_conversation_have_it_in_turns(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let others = [(); 2].map(|()| Other::start(place, "contend", &id, 40));
    others.into_iter().for_each(Other::finish);
    assert_eq!(contiguous(&*store, &id).await, 80);
    for (number, record) in store.load(&id).await.unwrap().records {
        let Record::Asked { content } = record else {
            panic!("{record:?}");
        };
        assert_eq!(text_of(&content), format!("after {}", number - 1));
    }
}

pub(crate) async fn a_killed_holder_holds_nothing_any_more(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let mut first = Other::start(place, "hold", &id, 0);
    assert_eq!(first.hear().unwrap(), "held");
    let mut second = Other::start(place, "hold", &id, 0);
    assert_eq!(second.hear().unwrap(), "refused");
    assert!(matches!(store.lease(&id).await, Err(StoreError::Held(_))));
    assert!(matches!(store.remove(&id).await, Err(StoreError::Held(_))));
    assert!(store.list(&all()).await.unwrap()[0].is_held);
    first.kill();
    let_go(&*store, &id).await;
    assert!(!store.list(&all()).await.unwrap()[0].is_held);
    let mut third = Other::start(place, "hold", &id, 0);
    assert_eq!(third.hear().unwrap(), "held");
    third.finish();
    second.finish();
    let lease = taken(&*store, &id).await;
    assert_eq!(store.append(&lease, &asked("mine")).await.unwrap(), 1);
}
