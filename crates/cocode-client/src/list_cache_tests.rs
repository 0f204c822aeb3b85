//! What is remembered, for how long, and what is not believed.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use cocode_core::{Era, Revision};
use cocode_wire::RawJson;
use tempfile::TempDir;

use super::{
    Freshness, ListCache, ListCacheError, ListKind, MAX_CACHE_BYTES, MAX_ENTRY_AGE,
    MAX_ENTRY_BYTES, MAX_LIST_TTL, MAX_WRITING_TIME, PurgedLists, Remembered, RememberedList,
    format,
};

const KEY: &str = "0123abcd";
const GREETING: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},
 "serverInfo":{"name":"files","version":"1.0"},"instructions":"be gentle"}"#;
const PAGE: &str = "{ \"tools\" : [ {\"name\":\"a\",\n\"inputSchema\":{\"x\":1.0e2}} ],\"big\":12345678901234567890 }";

struct Fixture {
    // Removes everything at the end.
    _scratch: TempDir,
    directory: PathBuf,
    cache: ListCache,
}

impl Fixture {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("state/lists");
        let cache = ListCache::open(&directory);
        Self {
            _scratch: scratch,
            directory,
            cache,
        }
    }

    fn file(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.lists"))
    }

    fn names(&self) -> Vec<String> {
        let files = fs::read_dir(&self.directory).unwrap();
        let name = |file: std::io::Result<fs::DirEntry>| file.unwrap().file_name();
        let mut names: Vec<String> = files
            .map(|file| name(file).into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn list(page: &str) -> RememberedList {
    RememberedList {
        pages: vec![raw(page), raw("{\"tools\":[]}")],
        fetched_at: at(1_800_000_000) + Duration::from_millis(123),
        ttl: Some(Duration::from_millis(1500)),
        cache_scope: Some("private".to_owned()),
    }
}

fn remembered() -> Remembered {
    let empty = RememberedList {
        pages: Vec::new(),
        fetched_at: at(1_800_000_000),
        ttl: None,
        cache_scope: None,
    };
    Remembered {
        revision: Some(Revision::V2025_11_25),
        greeting: Some(raw(GREETING)),
        lists: [(ListKind::Tools, list(PAGE)), (ListKind::Prompts, empty)].into(),
    }
}

#[test]
fn what_was_stored_comes_back_byte_for_byte() {
    let fixture = Fixture::new();
    assert_eq!(fixture.cache.load(KEY), None);
    fixture.cache.store(KEY, &remembered()).unwrap();
    let loaded = ListCache::open(&fixture.directory).load(KEY).unwrap();
    assert_eq!(loaded, remembered());
    assert_eq!(loaded.lists[&ListKind::Tools].pages[0].as_str(), PAGE);
    assert_eq!(loaded.greeting.unwrap().as_str(), GREETING);
}

#[test]
fn a_server_is_known_by_what_it_said_of_itself() {
    let remembered = remembered();
    assert_eq!(remembered.era(), Some(Era::Legacy));
    let facts = remembered.facts().unwrap();
    assert_eq!(facts.name.as_deref(), Some("files"));
    assert_eq!(facts.version.as_deref(), Some("1.0"));
    assert_eq!(facts.instructions.as_deref(), Some("be gentle"));
    assert!(facts.capabilities.tools_changes);
    assert!(!facts.capabilities.prompts);
    let again = Remembered::of(&facts);
    assert_eq!(again.greeting.unwrap().as_str(), GREETING);
    assert!(Remembered::default().facts().is_none());
}

#[test]
fn another_key_knows_nothing() {
    let fixture = Fixture::new();
    fixture.cache.store(KEY, &remembered()).unwrap();
    assert_eq!(fixture.cache.load("0123abce"), None);
    fs::copy(fixture.file(KEY), fixture.file("0123abce")).unwrap();
    assert_eq!(fixture.cache.load("0123abce"), None);
}

#[test]
fn only_fingerprints_are_keys() {
    let fixture = Fixture::new();
    for key in ["", "../../x", "ABCD", "12 ", "é", &"0".repeat(129)] {
        assert_eq!(fixture.cache.load(key), None);
        let stored = fixture.cache.store(key, &remembered());
        assert!(matches!(stored, Err(ListCacheError::InvalidKey { .. })));
        let forgotten = fixture.cache.forget(key);
        assert!(matches!(forgotten, Err(ListCacheError::InvalidKey { .. })));
    }
    assert!(!fixture.directory.exists());
}

#[test]
fn accounts_at_one_server_have_keys_of_their_own() {
    let fixture = Fixture::new();
    let keys = [
        ListCache::key_for(KEY, &[]),
        ListCache::key_for(KEY, &["ab", "c"]),
        ListCache::key_for(KEY, &["a", "bc"]),
        ListCache::key_for("0123abce", &["a", "bc"]),
    ];
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key));
        fixture.cache.store(key, &remembered()).unwrap();
    }
    assert_eq!(keys[0], ListCache::key_for(KEY, &[]));
}

#[test]
fn files_are_for_their_owner_only() {
    let fixture = Fixture::new();
    fs::create_dir_all(&fixture.directory).unwrap();
    fs::set_permissions(&fixture.directory, fs::Permissions::from_mode(0o755)).unwrap();
    fixture.cache.store(KEY, &remembered()).unwrap();
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&fixture.directory), 0o700);
    assert_eq!(mode(&fixture.file(KEY)), 0o600);
    assert_eq!(fixture.names(), ["0123abcd.lists"]);
}

#[test]
fn a_file_that_is_cut_off_changed_or_foreign_is_as_good_as_none_and_is_replaced() {
    let fixture = Fixture::new();
    fixture.cache.store(KEY, &remembered()).unwrap();
    let file = fixture.file(KEY);
    let good = fs::read(&file).unwrap();
    for length in 0..good.len() {
        assert!(format::decode(KEY, &good[..length]).is_err());
        let mut changed = good.clone();
        changed[length] ^= 1;
        assert!(format::decode(KEY, &changed).is_err());
    }
    let is_rejected = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        assert_eq!(fixture.cache.load(KEY), None);
    };
    is_rejected(b"");
    is_rejected(&good[..good.len() / 2]);
    is_rejected(&[&good, &b"more"[..]].concat());
    is_rejected(b"\xff\xfe\n{}\n");
    fixture.cache.store(KEY, &remembered()).unwrap();
    assert_eq!(fs::read(&file).unwrap(), good);
}

#[test]
fn a_file_of_a_newer_version_is_as_good_as_none() {
    let bytes = format::encode(KEY, &remembered()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(format::decode(KEY, text.as_bytes()).is_ok());
    let newer = text.replacen("cocode-lists 1 ", "cocode-lists 2 ", 1);
    let decoded = format::decode(KEY, newer.as_bytes());
    assert_eq!(decoded.unwrap_err(), "it is of another version");
}

#[test]
fn what_is_no_file_of_reasonable_size_is_not_read() {
    let fixture = Fixture::new();
    fixture.cache.store(KEY, &remembered()).unwrap();
    let file = fixture.file(KEY);
    let large = u64::try_from(MAX_ENTRY_BYTES).unwrap() + 1;
    File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(large)
        .unwrap();
    assert_eq!(fixture.cache.load(KEY), None);
    let elsewhere = fixture.directory.join("elsewhere");
    fs::write(&elsewhere, format::encode(KEY, &remembered()).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert_eq!(fixture.cache.load(KEY), None);
    fixture.cache.store(KEY, &remembered()).unwrap();
    assert_eq!(fixture.cache.load(KEY), Some(remembered()));
}

#[test]
fn lists_that_are_too_large_are_not_remembered_and_neither_is_what_was_before() {
    let fixture = Fixture::new();
    fixture.cache.store(KEY, &remembered()).unwrap();
    let large = format!("{{\"tools\":[\"{}\"]}}", "x".repeat(MAX_ENTRY_BYTES));
    let mut remembered = remembered();
    remembered.lists.insert(ListKind::Resources, list(&large));
    let stored = fixture.cache.store(KEY, &remembered);
    assert!(matches!(stored, Err(ListCacheError::TooLarge { bytes }) if bytes > MAX_ENTRY_BYTES));
    assert_eq!(fixture.cache.load(KEY), None);
    assert!(fixture.names().is_empty());
}

#[test]
fn a_forgotten_server_is_gone() {
    let fixture = Fixture::new();
    assert!(!fixture.cache.forget(KEY).unwrap());
    fixture.cache.store(KEY, &remembered()).unwrap();
    assert!(fixture.cache.forget(KEY).unwrap());
    assert_eq!(fixture.cache.load(KEY), None);
}

#[test]
fn a_cache_that_is_off_remembers_nothing() {
    let cache = ListCache::off();
    cache.store(KEY, &remembered()).unwrap();
    assert_eq!(cache.load(KEY), None);
    assert!(!cache.forget(KEY).unwrap());
    assert_eq!(cache.purge(at(0)).unwrap(), PurgedLists::default());
}

#[test]
fn a_list_is_fresh_for_as_long_as_its_server_says_or_five_minutes() {
    use Freshness::{Fresh, Stale};

    let fetched = at(1_800_000_000);
    let check = |ttl: Option<Duration>, age_ms: i64, expected: Freshness| {
        let list = RememberedList {
            pages: Vec::new(),
            fetched_at: fetched,
            ttl,
            cache_scope: None,
        };
        let age = Duration::from_millis(age_ms.unsigned_abs());
        let now = if age_ms < 0 {
            fetched - age
        } else {
            fetched + age
        };
        assert_eq!(list.freshness(now), expected, "{ttl:?} after {age_ms} ms");
    };
    check(None, 0, Fresh);
    check(None, 299_999, Fresh);
    check(None, 300_000, Stale);
    check(Some(Duration::from_secs(1)), 999, Fresh);
    check(Some(Duration::from_secs(1)), 1000, Stale);
    check(Some(Duration::ZERO), 0, Stale);
    check(Some(Duration::from_hours(1)), 3_599_999, Fresh);
    let longest = i64::try_from(MAX_LIST_TTL.as_millis()).unwrap();
    check(Some(Duration::MAX), longest - 1, Fresh);
    check(Some(Duration::MAX), longest, Stale);
    // The clock was set back.
    check(None, -1, Stale);
    check(Some(Duration::MAX), -1, Stale);
}

#[test]
fn entries_that_nobody_wrote_for_long_go() {
    let fixture = Fixture::new();
    fixture.cache.store("01", &remembered()).unwrap();
    fixture.cache.store("02", &remembered()).unwrap();
    let unfinished = fixture.directory.join(".03.lists.0123.new");
    let foreign = fixture.directory.join("notes.txt");
    for path in [&unfinished, &foreign] {
        fs::write(path, "x").unwrap();
    }
    let now = SystemTime::now();
    let written = |path: &PathBuf, at: SystemTime| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(at).unwrap();
    };
    let minute = Duration::from_mins(1);
    written(&fixture.file("01"), now - MAX_ENTRY_AGE - minute);
    written(&fixture.file("02"), now - MAX_ENTRY_AGE + minute);
    written(&unfinished, now - MAX_WRITING_TIME + minute);
    written(&foreign, now - MAX_ENTRY_AGE * 2);
    let size = fs::metadata(fixture.file("01")).unwrap().len();
    let purged = fixture.cache.purge(now).unwrap();
    assert_eq!(
        purged,
        PurgedLists {
            files: 1,
            bytes: size
        }
    );
    assert_eq!(
        fixture.names(),
        [".03.lists.0123.new", "02.lists", "notes.txt"]
    );
    written(&unfinished, now - MAX_WRITING_TIME - minute);
    fixture.cache.store("04", &remembered()).unwrap();
    assert_eq!(fixture.names(), ["02.lists", "04.lists", "notes.txt"]);
}

#[test]
fn the_oldest_entries_make_room_for_new_ones() {
    let fixture = Fixture::new();
    fixture.cache.store("01", &remembered()).unwrap();
    let now = SystemTime::now();
    // Files of one size each, without bytes in them.
    for (key, age) in [("02", 40), ("03", 10), ("04", 30), ("05", 20)] {
        let file = File::create(fixture.file(key)).unwrap();
        file.set_len(MAX_CACHE_BYTES / 4).unwrap();
        file.set_modified(now - Duration::from_secs(age)).unwrap();
    }
    fixture.cache.store("01", &remembered()).unwrap();
    assert_eq!(
        fixture.names(),
        ["01.lists", "03.lists", "04.lists", "05.lists"]
    );
    assert_eq!(fixture.cache.load("01"), Some(remembered()));
}

#[test]
fn many_writers_never_leave_anything_half_done() {
    let fixture = Fixture::new();
    let variant = |writer: usize| {
        let mut remembered = remembered();
        let page = format!("{{\"tools\":[\"{}\"]}}", "x".repeat(10_000 + writer));
        remembered.lists.insert(ListKind::Tools, list(&page));
        remembered
    };
    fixture.cache.store(KEY, &variant(0)).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let cache = ListCache::open(&fixture.directory);
            scope.spawn(move || {
                for _round in 0..50 {
                    cache.store(KEY, &variant(writer)).unwrap();
                    let loaded = cache.load(KEY).unwrap();
                    assert!((0..4).any(|other| loaded == variant(other)));
                }
            });
        }
    });
    assert_eq!(fixture.names(), ["0123abcd.lists"]);
}
