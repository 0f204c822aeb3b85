//! Places as a table, and real programs in place of browsers.

use std::fs;
use std::path::PathBuf;

use super::*;

fn desktop() -> BrowserFacts {
    BrowserFacts {
        system: System::Free,
        browser: None,
        ssh: false,
        display: true,
        ci: false,
        programs: vec!["xdg-open".to_owned(), "gio".to_owned()],
    }
}

/// The commands in the order in which they are tried.
fn planned(facts: &BrowserFacts) -> Result<Vec<String>, NoBrowser> {
    let url = Url::parse("https://a.example/?b").unwrap();
    match plan(facts) {
        BrowserPlan::Open(commands) => Ok(commands
            .iter()
            .map(|command| format!("{} {}", command.program, command.arguments(&url).join(" ")))
            .collect()),
        BrowserPlan::Show(reason) => Err(reason),
    }
}

fn check(change: impl FnOnce(&mut BrowserFacts), expected: Result<&[&str], NoBrowser>) {
    let mut facts = desktop();
    change(&mut facts);
    let expected = expected.map(|commands| {
        commands
            .iter()
            .map(|command| (*command).to_owned())
            .collect::<Vec<_>>()
    });
    assert_eq!(planned(&facts), expected, "{facts:?}");
}

#[test]
fn the_place_decides_how_an_address_is_opened() {
    let free = [
        "xdg-open https://a.example/?b",
        "gio open https://a.example/?b",
    ];
    check(|_| {}, Ok(&free));
    check(|facts| facts.programs.truncate(1), Ok(&free[..1]));
    check(|facts| facts.programs.clear(), Err(NoBrowser::NoProgram));
    check(|facts| facts.display = false, Err(NoBrowser::NoDisplay));
    check(|facts| facts.ssh = true, Err(NoBrowser::Ssh));
    check(|facts| facts.ci = true, Err(NoBrowser::Ci));
    let mac = ["/usr/bin/open https://a.example/?b"];
    check(
        |facts| {
            facts.system = System::Mac;
            facts.display = false;
            facts.programs.clear();
        },
        Ok(&mac),
    );
    check(
        |facts| {
            facts.system = System::Mac;
            facts.ssh = true;
        },
        Err(NoBrowser::Ssh),
    );
    check(
        |facts| {
            facts.system = System::Wsl;
            facts.display = false;
            facts.programs.push("wslview".to_owned());
        },
        Ok(&["wslview https://a.example/?b"]),
    );
    check(|facts| facts.system = System::Wsl, Ok(&free));
    check(
        |facts| {
            facts.system = System::Wsl;
            facts.display = false;
        },
        Err(NoBrowser::NoProgram),
    );
}

#[test]
fn the_variable_counts_before_everything_else() {
    let browser = |value: &str| {
        let value = value.to_owned();
        move |facts: &mut BrowserFacts| {
            facts.browser = Some(value);
            facts.ssh = true;
            facts.display = false;
        }
    };
    check(browser("firefox"), Ok(&["firefox https://a.example/?b"]));
    check(
        browser("/opt/code/browser.sh:chromium --app=%s --new"),
        Ok(&[
            "/opt/code/browser.sh https://a.example/?b",
            "chromium --app=https://a.example/?b --new",
        ]),
    );
    check(
        browser("firefox %s &"),
        Ok(&["firefox https://a.example/?b"]),
    );
    check(browser("::firefox:"), Ok(&["firefox https://a.example/?b"]));
    check(
        browser("w3m:firefox"),
        Ok(&["firefox https://a.example/?b"]),
    );
    check(browser("/usr/bin/w3m:lynx %s"), Err(NoBrowser::Ssh));
    for off in ["", " ", "none", "false"] {
        check(browser(off), Err(NoBrowser::TurnedOff));
    }
}

fn environment(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    variables
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .collect()
}

#[cfg(not(target_os = "macos"))]
#[test]
fn facts_come_from_the_given_variables() {
    let none = BrowserFacts {
        system: System::Free,
        browser: None,
        ssh: false,
        display: false,
        ci: false,
        programs: Vec::new(),
    };
    let with = |change: fn(&mut BrowserFacts)| {
        let mut facts = none.clone();
        change(&mut facts);
        facts
    };
    for (name, value, expected) in [
        ("DISPLAY", ":0", with(|facts| facts.display = true)),
        ("WAYLAND_DISPLAY", "w", with(|facts| facts.display = true)),
        ("DISPLAY", "", none.clone()),
        ("SSH_CONNECTION", "1 2 3 4", with(|facts| facts.ssh = true)),
        ("SSH_TTY", "/dev/pts/1", with(|facts| facts.ssh = true)),
        ("CI", "true", with(|facts| facts.ci = true)),
        ("CI", "false", none.clone()),
        ("CI", "", none.clone()),
        (
            "WSL_DISTRO_NAME",
            "Debian",
            with(|facts| facts.system = System::Wsl),
        ),
        (
            "BROWSER",
            "",
            with(|facts| facts.browser = Some(String::new())),
        ),
    ] {
        let facts = BrowserFacts::gather(&environment(&[("PATH", "/nowhere"), (name, value)]));
        assert_eq!(facts, expected, "{name}={value}");
    }
}

/// A directory of programs that stand in for browsers.
struct Programs(tempfile::TempDir);

impl Programs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn add(&self, name: &str, script: &str) {
        let file = self.file(name);
        fs::write(
            &file,
            format!("#!/bin/sh\ncd '{}'\n{script}\n", self.0.path().display()),
        )
        .unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let path = format!("{}:/usr/bin:/bin", self.0.path().display());
        environment(&[("PATH", &path), ("MARK", "seen")])
    }
}

fn commands(names: &[&str]) -> Vec<BrowserCommand> {
    names
        .iter()
        .map(|name| BrowserCommand::new(name, &[]))
        .collect()
}

fn url() -> Url {
    Url::parse("https://a.example/a?state=hunter2&b=$(touch%20x);'c'&d=`e`").unwrap()
}

#[test]
fn programs_are_found_in_the_path() {
    let programs = Programs::new();
    programs.add("wslview", "");
    fs::write(programs.file("gio"), "not executable").unwrap();
    let path = programs.0.path().to_str().unwrap();
    let facts = BrowserFacts::gather(&environment(&[("PATH", path)]));
    assert_eq!(facts.programs, ["wslview"]);
}

#[tokio::test]
async fn the_address_is_one_argument_and_no_shell_sees_it() {
    let programs = Programs::new();
    programs.add("good", "printf '%s\\n' \"$#\" \"$1\" \"$MARK\" > out");
    open(&commands(&["good"]), &url(), &programs.environment())
        .await
        .unwrap();
    let out = fs::read_to_string(programs.file("out")).unwrap();
    assert_eq!(out, format!("1\n{}\nseen\n", url()));
    assert!(!programs.file("x").exists());
}

#[tokio::test]
async fn the_next_program_is_tried_when_one_fails() {
    let programs = Programs::new();
    programs.add("bad", "exit 3");
    programs.add("good", "> out");
    let tried = commands(&["missing", "bad", "good"]);
    open(&tried, &url(), &programs.environment()).await.unwrap();
    assert!(programs.file("out").exists());
}

#[tokio::test]
async fn failures_name_the_programs_and_not_the_address() {
    let programs = Programs::new();
    programs.add("bad", "echo \"$1\" >&2; exit 3");
    let tried = commands(&["missing", "bad"]);
    let error = open(&tried, &url(), &programs.environment())
        .await
        .unwrap_err();
    let shown = error.to_string();
    for part in ["`missing` did not start", "`bad` ended with exit status: 3"] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(!format!("{shown} {error:?}").contains("hunter2"));
}

#[tokio::test]
async fn only_addresses_of_the_web_are_opened() {
    let programs = Programs::new();
    programs.add("good", "> out");
    for address in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "ssh://a.example",
    ] {
        let url = Url::parse(address).unwrap();
        let opened = open(&commands(&["good"]), &url, &programs.environment()).await;
        assert!(
            matches!(opened, Err(BrowserError::Scheme { .. })),
            "{address}"
        );
    }
    assert!(!programs.file("out").exists());
}

/// The clock jumps over the time in which a program could fail, since nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_program_that_stays_is_the_browser_and_is_left_alone() {
    let programs = Programs::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "the system call is not to be had on macOS"
    )]
    let made = std::process::Command::new("mkfifo")
        .args([programs.file("go"), programs.file("done")])
        .status()
        .unwrap();
    assert!(made.success());
    // Its group is its own, so that an interrupt at the terminal does not reach it.
    programs.add(
        "browser",
        "read word < go; kill -s 0 -- -$$ && group=own; echo \"$word $group $$\" > done",
    );
    open(&commands(&["browser"]), &url(), &programs.environment())
        .await
        .unwrap();
    fs::write(programs.file("go"), "word\n").unwrap();
    let done = fs::read_to_string(programs.file("done")).unwrap();
    let words: Vec<&str> = done.split_whitespace().collect();
    assert_eq!(words[..2], ["word", "own"]);
    // On Linux the process table is a directory: when it ends, it must not stay there as a zombie.
    let process = PathBuf::from("/proc").join(words[2]);
    while process.exists() {
        tokio::task::yield_now().await;
    }
}
