//! How sessions end, and what is left of them in the terminal.

use crate::tmux::{Tmux, demo, history};

/// The terminal is as it was: lines are edited, keys are echoed, the cursor is seen.
#[track_caller]
fn assert_sane(tmux: &Tmux) {
    assert_eq!(tmux.fact("alternate_on"), "0");
    assert_eq!(tmux.fact("cursor_flag"), "1");
    assert_eq!(tmux.fact("wrap_flag"), "1");
    let tty = tmux.fact("pane_tty");
    let modes = std::process::Command::new("stty")
        .args(["-a", "-F", &tty])
        .output()
        .expect("stty is installed");
    let modes = String::from_utf8(modes.stdout).expect("stty prints UTF-8");
    let words: Vec<&str> = modes.split_whitespace().collect();
    for mode in ["icanon", "echo", "isig", "icrnl", "opost", "onlcr"] {
        assert!(words.contains(&mode), "{mode} is not set: {modes}");
    }
    // A paste has no brackets around it any more.
    tmux.paste("pasted");
    let screen = tmux.wait_for("pasted");
    assert!(!screen.contains("[200~"), "{screen}");
}

#[test]
fn system_the_terminal_is_as_before_after_quitting() {
    for keys in [&["/quit", "Enter"][..], &["C-d"], &["C-c", "C-c"]] {
        let (_folder, path) = history();
        let tmux = Tmux::demo(&path);
        for key in keys {
            tmux.keys(&[key]);
        }
        let screen = tmux.wait_for("ended with 0");
        assert!(!screen.contains("demo-1 ·"), "{keys:?}\n{screen}");
        assert_sane(&tmux);
    }
}

#[test]
fn system_control_c_once_only_says_how_to_quit() {
    let (_folder, path) = history();
    let tmux = Tmux::demo(&path);
    tmux.keys(&["C-c"]);
    tmux.wait_for("Ctrl-C again quits");
    tmux.wait_until_gone("Ctrl-C again quits");
    tmux.text("still here");
    tmux.wait_for("> still here");
}

#[test]
fn system_the_terminal_is_as_before_after_sigterm_in_the_middle_of_a_turn() {
    let (_folder, path) = history();
    let (demo, shown) = (demo(), path.display());
    let tmux = Tmux::start(&format!(
        "sh -c '{} {shown} & echo $! > {shown}.pid; wait; echo ended with $?; exec cat'",
        demo.display()
    ));
    tmux.wait_for("> ask for something");
    tmux.enter("wait");
    tmux.wait_for("Waiting until somebody interrupts.");
    let pid = std::fs::read_to_string(format!("{shown}.pid")).expect("the shell wrote it");
    let killed = std::process::Command::new("kill")
        .args(["-TERM", pid.trim()])
        .status()
        .expect("kill is there");
    assert!(killed.success());
    tmux.wait_for("■ interrupted");
    tmux.wait_for("ended with 0");
    assert_sane(&tmux);
}

#[test]
fn system_a_fault_in_a_command_ends_no_session() {
    let (_folder, path) = history();
    let tmux = Tmux::demo(&path);
    tmux.enter("/panic");
    tmux.wait_for("this ended by a fault of the program");
    tmux.enter("go on");
    tmux.wait_for("Lines: 1, characters: 5.");
    tmux.wait_until_idle();
    tmux.keys(&["C-d"]);
    tmux.wait_for("ended with 0");
    assert_sane(&tmux);
}

#[test]
fn system_the_terminal_is_as_before_after_a_fault_of_the_session_and_the_fault_is_told() {
    let (_folder, path) = history();
    let tmux = Tmux::demo(&path);
    tmux.enter("/panic-all");
    tmux.wait_for("ended with 101");
    let all = tmux.scrollback();
    assert!(all.contains("as wanted of all"), "{all}");
    assert_sane(&tmux);
}

#[test]
fn system_a_session_is_suspended_and_goes_on() {
    let (_folder, path) = history();
    let tmux = Tmux::start("env PS1='shell: ' bash --norc --noprofile -i");
    tmux.wait_for("shell:");
    let demo = demo();
    tmux.text(&format!("clear; {} {}", demo.display(), path.display()));
    tmux.keys(&["Enter"]);
    tmux.wait_for("> ask for something");
    tmux.text("half a thou");
    tmux.wait_for("> half a thou");
    tmux.keys(&["C-z"]);
    tmux.wait_for("Stopped");
    tmux.text("echo $((20 + 3))");
    tmux.keys(&["Enter"]);
    tmux.wait_for("\n23\n");
    tmux.text("fg");
    tmux.keys(&["Enter"]);
    tmux.wait_for("> half a thou");
    tmux.text("ght");
    tmux.wait_for("> half a thought");
    tmux.keys(&["Enter"]);
    tmux.wait_for("Lines: 1, characters: 14.");
    tmux.wait_until_idle();
    tmux.keys(&["C-d"]);
    tmux.wait_until("shell", |screen| screen.ends_with("shell:"));
}
