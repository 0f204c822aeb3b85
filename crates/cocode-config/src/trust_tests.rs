//! Approvals by file, name and content, and the file they are kept in.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::entry::Text;

struct Room {
    directory: tempfile::TempDir,
    context: EditContext,
    file: PathBuf,
}

impl Room {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(".mcp.json");
        fs::write(&file, "{}").unwrap();
        let context = EditContext::new(directory.path().join("locks"));
        Self {
            directory,
            context,
            file,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("state/trust.json")
    }

    fn store(&self) -> TrustStore {
        TrustStore::load(self.path()).unwrap()
    }

    fn server<'a>(&'a self, name: &'a str, entry: &'a Entry) -> TrustItem<'a> {
        let content = TrustContent::Server(entry);
        TrustItem {
            file: &self.file,
            name,
            content,
        }
    }

    fn approve(&self, item: &TrustItem<'_>) {
        let mut store = self.store();
        let approval = Approval::Approved;
        store.approve(&self.context, item, approval, 1).unwrap();
    }
}

fn entry(command: &str) -> Entry {
    Entry {
        command: Some(command.to_owned()),
        env: BTreeMap::from([("TOKEN".to_owned(), Text::from("hunter2"))]),
        ..Entry::default()
    }
}

#[test]
fn an_approval_holds_for_this_file_name_and_content() {
    let room = Room::new();
    let (npx, sh) = (entry("npx"), entry("sh"));
    let item = room.server("a", &npx);
    assert_eq!(room.store().verdict(&item), Trust::New);
    room.approve(&item);
    assert_eq!(room.store().verdict(&item), Trust::Approved);
    assert_eq!(room.store().verdict(&room.server("b", &npx)), Trust::New);
    let elsewhere = room.directory.path().join("other.json");
    fs::write(&elsewhere, "{}").unwrap();
    let other = TrustItem {
        file: &elsewhere,
        ..item
    };
    assert_eq!(room.store().verdict(&other), Trust::New);
    let Trust::Changed(difference) = room.store().verdict(&room.server("a", &sh)) else {
        panic!("a changed entry is no longer approved");
    };
    assert_eq!(
        difference.to_string(),
        "- command = \"npx\"\n+ command = \"sh\"\n"
    );
}

/// A key of an entry, and what gives it a value.
type Change = (&'static str, fn(&mut Entry, String));

/// A file of a work tree must not read any file, or run anything, and send it to a server before
/// somebody saw that and agreed.
#[test]
fn what_is_read_or_run_to_sign_in_is_shown_and_asked_about_like_a_headers_helper() {
    let room = Room::new();
    let plain = Entry {
        url: Some("https://example.com/mcp".to_owned()),
        ..Entry::default()
    };
    room.approve(&room.server("a", &plain));
    let changes: [Change; 7] = [
        ("headers_helper", |entry, text| {
            entry.headers_helper = Some(text);
        }),
        ("oauth.assertion_command", |entry, text| {
            entry.oauth.assertion_command = Some(text);
        }),
        ("oauth.assertion_file", |entry, text| {
            entry.oauth.assertion_file = Some(text);
        }),
        ("oauth.private_key_file", |entry, text| {
            entry.oauth.private_key_file = Some(text);
        }),
        ("oauth.issuer", |entry, text| {
            entry.oauth.issuer = Some(text);
        }),
        ("oauth.idp_issuer", |entry, text| {
            entry.oauth.idp_issuer = Some(text);
        }),
        ("oauth.idp_token_endpoint", |entry, text| {
            entry.oauth.idp_token_endpoint = Some(text);
        }),
    ];
    for (key, change) in changes {
        let mut first = plain.clone();
        change(&mut first, "~/.ssh/id".to_owned());
        let asked = room.store().verdict(&room.server("a", &first));
        let Trust::Changed(difference) = asked else {
            panic!("`{key}` is approved though nobody saw it");
        };
        let expected = format!("+ {key} = \"~/.ssh/id\"\n");
        assert_eq!(difference.to_string(), expected);
        let lines = first.lines();
        let line = lines.iter().find(|line| line.key == key).unwrap();
        assert_eq!(line.in_full(), "\"~/.ssh/id\"");

        room.approve(&room.server("b", &first));
        let mut second = plain.clone();
        change(&mut second, "~/.netrc".to_owned());
        let asked = room.store().verdict(&room.server("b", &second));
        assert!(matches!(asked, Trust::Changed(_)), "{key}");
        let approved = room.store().verdict(&room.server("b", &first));
        assert_eq!(approved, Trust::Approved, "{key}");
    }
}

#[test]
fn a_file_is_the_same_by_every_path() {
    let room = Room::new();
    let npx = entry("npx");
    room.approve(&room.server("a", &npx));
    let link = room.directory.path().join("link.json");
    std::os::unix::fs::symlink(&room.file, &link).unwrap();
    let linked = TrustItem {
        file: &link,
        ..room.server("a", &npx)
    };
    assert_eq!(room.store().verdict(&linked), Trust::Approved);
}

#[test]
fn a_changed_secret_asks_again_without_being_kept() {
    let room = Room::new();
    let (before, mut after) = (entry("npx"), entry("npx"));
    after
        .env
        .insert("TOKEN".to_owned(), Text::from("swordfish"));
    room.approve(&room.server("a", &before));
    let Trust::Changed(difference) = room.store().verdict(&room.server("a", &after)) else {
        panic!("another secret is another entry");
    };
    assert_eq!(
        difference.to_string(),
        "- env.TOKEN = \"…\"\n+ env.TOKEN = \"swordfish\"\n"
    );
    let kept = fs::read_to_string(room.path()).unwrap();
    assert!(!kept.contains("hunter2"), "{kept}");
}

#[test]
fn secrets_in_arguments_and_addresses_are_compared_but_not_kept() {
    let room = Room::new();
    let mut before = entry("npx");
    before.args = ["--api-key", "hunter2"].map(str::to_owned).to_vec();
    before.url = Some("https://me:hunter2@h/?token=hunter2".to_owned());
    before.bearer_token_env_var = Some("sk-hunter2".to_owned());
    room.approve(&room.server("a", &before));
    let kept = fs::read_to_string(room.path()).unwrap();
    assert!(!kept.contains("hunter2"), "{kept}");
    let item = room.server("a", &before);
    assert_eq!(room.store().verdict(&item), Trust::Approved);
    let mut after = before.clone();
    after.args[1] = "swordfish".to_owned();
    let Trust::Changed(difference) = room.store().verdict(&room.server("a", &after)) else {
        panic!("another argument is another entry");
    };
    assert_eq!(
        difference.to_string(),
        "- args = [\"--api-key\",\"…\"]\n+ args = [\"--api-key\",\"swordfish\"]\n"
    );
}

#[test]
fn a_refusal_holds_until_the_content_changes() {
    let room = Room::new();
    let (npx, sh, zsh) = (entry("npx"), entry("sh"), entry("zsh"));
    let item = room.server("a", &sh);
    room.store().refuse(&room.context, &item, 2).unwrap();
    assert_eq!(room.store().verdict(&item), Trust::Refused);
    assert_eq!(room.store().verdict(&room.server("a", &npx)), Trust::New);
    room.approve(&room.server("a", &npx));
    room.store().refuse(&room.context, &item, 3).unwrap();
    assert_eq!(
        room.store().verdict(&room.server("a", &npx)),
        Trust::Approved
    );
    assert_eq!(room.store().verdict(&item), Trust::Refused);
    let other = room.store().verdict(&room.server("a", &zsh));
    assert!(matches!(other, Trust::Changed(_)), "{other:?}");
    // A no to what was approved takes the approval back.
    let approved = room.server("a", &npx);
    room.store().refuse(&room.context, &approved, 4).unwrap();
    assert_eq!(room.store().verdict(&approved), Trust::Refused);
}

#[test]
fn settings_are_approved_as_a_whole() {
    let room = Room::new();
    let item = |bytes| TrustItem {
        file: &room.file,
        name: "config.toml",
        content: TrustContent::File(bytes),
    };
    room.approve(&item(b"a = 1"));
    assert_eq!(room.store().verdict(&item(b"a = 1")), Trust::Approved);
    let Trust::Changed(difference) = room.store().verdict(&item(b"a = 2")) else {
        panic!("other bytes are another file");
    };
    assert_eq!(difference.to_string(), "~ content = (changed, not shown)\n");
}

#[test]
fn revoked_items_are_new_again() {
    let room = Room::new();
    let npx = entry("npx");
    for name in ["a", "b", "c"] {
        room.approve(&room.server(name, &npx));
    }
    let mut store = room.store();
    assert!(store.revoke(&room.context, &room.file, "a").unwrap());
    assert!(!store.revoke(&room.context, &room.file, "a").unwrap());
    assert_eq!(store.verdict(&room.server("a", &npx)), Trust::New);
    assert_eq!(
        room.store().verdict(&room.server("b", &npx)),
        Trust::Approved
    );
    // A file that is gone can be forgotten, too.
    fs::remove_file(&room.file).unwrap();
    assert_eq!(store.revoke_all(&room.context, &room.file).unwrap(), 2);
    assert_eq!(room.store().decisions().count(), 0);
}

#[test]
fn decisions_are_listed_by_file_and_name() {
    let room = Room::new();
    let npx = entry("npx");
    let mut store = room.store();
    let (b, a) = (room.server("b", &npx), room.server("a", &npx));
    store
        .approve(&room.context, &b, Approval::Written, 7)
        .unwrap();
    store.refuse(&room.context, &a, 8).unwrap();
    let store = room.store();
    let listed: Vec<_> = store
        .decisions()
        .map(|decision| (decision.name, decision.approval, decision.when))
        .collect();
    assert_eq!(listed, [("a", None, 8), ("b", Some(Approval::Written), 7)]);
}

#[test]
fn changes_of_two_processes_are_both_kept() {
    let room = Room::new();
    let npx = entry("npx");
    let (mut one, mut two) = (room.store(), room.store());
    let (a, b) = (room.server("a", &npx), room.server("b", &npx));
    one.approve(&room.context, &a, Approval::Approved, 1)
        .unwrap();
    two.approve(&room.context, &b, Approval::Approved, 1)
        .unwrap();
    assert_eq!(two.verdict(&a), Trust::Approved);
    assert_eq!(room.store().decisions().count(), 2);
}

#[test]
fn the_store_is_for_its_owner_only() {
    let room = Room::new();
    room.approve(&room.server("a", &entry("npx")));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&room.path()), 0o600);
    assert_eq!(mode(room.path().parent().unwrap()), 0o700);
    fs::set_permissions(room.path(), fs::Permissions::from_mode(0o666)).unwrap();
    let error = TrustStore::load(room.path()).unwrap_err();
    assert!(error.to_string().contains("others may write"), "{error}");
}

#[test]
fn a_broken_store_approves_nothing_and_is_left_alone() {
    let room = Room::new();
    let npx = entry("npx");
    room.approve(&room.server("a", &npx));
    let mut store = room.store();
    let broken = [
        "",
        "{",
        "[]",
        "\0",
        r#"{"version": 2, "items": []}"#,
        r#"{"version": 1, "items": [], "more": 1}"#,
    ];
    for broken in broken {
        fs::write(room.path(), broken).unwrap();
        let error = TrustStore::load(room.path()).unwrap_err();
        assert!(matches!(error, TrustError::Broken(_)), "{error:?}");
        assert!(error.to_string().contains("trust.json"), "{error}");
        let item = room.server("b", &npx);
        let error = store.approve(&room.context, &item, Approval::Approved, 1);
        assert!(matches!(error, Err(TrustError::Broken(_))), "{error:?}");
        assert_eq!(fs::read_to_string(room.path()).unwrap(), broken);
    }
    let empty = TrustStore::empty(room.path());
    assert_eq!(empty.verdict(&room.server("a", &npx)), Trust::New);
}
