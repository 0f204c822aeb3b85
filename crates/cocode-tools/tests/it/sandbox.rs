//! A workspace in a sandbox: what its commands and editors cannot do, how that is told, and the way out.

use std::fs;
use std::net::TcpListener;

use cocode_tools::{Confinement, Denial, Leaving, NoProgress, Permissions, ToolError, Workspace};
use serde_json::{Value, json};

use crate::{ALL, House, text};

impl House {
    fn confined_by(confinement: impl FnOnce(&Workspace) -> Confinement) -> Self {
        let Self { base, workspace } = Self::new();
        let confinement = confinement(&workspace);
        let workspace = workspace.with_confinement(confinement, Leaving::Offered);
        Self { base, workspace }
    }

    /// Commands may write the workspace, and nothing else.
    fn confined() -> Self {
        Self::confined_by(|workspace| Confinement::workspace_write(workspace.handle().clone()))
    }

    /// Runs a command, and gives its exit code and whether the sandbox is blamed.
    async fn command(&self, command: &str) -> (Value, Option<Denial>) {
        let arguments = json!({ "command": command });
        let output = self.call("shell", arguments).await.unwrap();
        (
            output.structured.unwrap()["exit_code"].take(),
            output.denial,
        )
    }
}

fn shell_schema(workspace: &Workspace) -> Value {
    let all = workspace.definitions();
    let shell = all.into_iter().find(|tool| tool.name == "shell").unwrap();
    shell.input_schema["properties"].clone()
}

#[tokio::test]
async fn commands_write_in_the_workspace_only() {
    let house = House::confined();
    assert_eq!(house.command("echo x >made").await, (json!(0), None));
    let (code, denial) = house.command("echo x >../outside/made").await;
    assert_ne!(code, json!(0));
    assert_eq!(denial, Some(Denial::Likely));
    assert!(house.inside("made").exists() && !house.outside("made").exists());
}

#[tokio::test]
async fn the_model_hears_that_it_may_have_been_the_sandbox() {
    let house = House::confined();
    let said = house
        .text(
            "shell",
            json!({ "command": "LC_ALL=C touch ../outside/made; exit 4" }),
        )
        .await;
    let notes = "[exit code 4]\n[the sandbox may have denied this]";
    assert!(said.ends_with(notes), "{said}");
}

#[tokio::test]
async fn a_command_that_fails_by_itself_is_not_blamed_on_the_sandbox() {
    let house = House::confined();
    let failed = house.command("echo no such thing; exit 1").await;
    assert_eq!(failed, (json!(1), None));
    let fine = house.command("echo Permission denied").await;
    assert_eq!(fine, (json!(0), None));
    let free = House::new().command("echo Permission denied; exit 1").await;
    assert_eq!(free, (json!(1), None));
}

#[tokio::test]
async fn without_network_a_connection_is_denied_and_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'");
    let (code, denial) = House::confined().command(&command).await;
    assert_ne!(code, json!(0));
    assert_eq!(denial, Some(Denial::Likely));
    let online = House::confined_by(|_| Confinement::read_only().with_network());
    assert_eq!(online.command(&command).await, (json!(0), None));
}

#[tokio::test]
async fn who_asks_to_leave_is_refused_until_somebody_lets_it() {
    let house = House::confined();
    let arguments = json!({
        "command": "echo x >../outside/made",
        "unconfined": true,
        "justification": "to make it",
    });
    let request = house.workspace.asks_to_leave("shell", &arguments).unwrap();
    assert_eq!(request.justification.as_deref(), Some("to make it"));
    assert_eq!(house.workspace.asks_to_leave("read", &arguments), None);

    let output = house.call("shell", arguments.clone()).await.unwrap();
    assert!(output.is_error && output.denial == Some(Denial::Certain));
    assert_eq!(
        text(&output),
        "the command asks to run outside of the sandbox, and nobody has allowed that"
    );
    assert!(!house.outside("made").exists());

    let free = house.workspace.unconfined();
    assert_eq!(free.asks_to_leave("shell", &arguments), None);
    let output = free.call("shell", &arguments, &NoProgress).await.unwrap();
    assert!(!output.is_error && output.denial.is_none(), "{output:?}");
    assert!(house.outside("made").exists());
    assert!(
        house.workspace.confinement().is_some(),
        "the other is as it was"
    );
}

#[tokio::test]
async fn the_model_is_told_how_to_ask_only_where_that_is_of_use() {
    let house = House::confined();
    let offered = shell_schema(&house.workspace);
    assert!(offered["unconfined"].is_object() && offered["justification"].is_object());
    let quiet = house
        .workspace
        .clone()
        .with_confinement(Confinement::read_only(), Leaving::NotOffered);
    assert!(shell_schema(&quiet)["unconfined"].is_null());
    assert!(shell_schema(&house.workspace.unconfined())["unconfined"].is_null());
    // Nor does it help to ask.
    let arguments = json!({ "command": "true", "unconfined": true });
    let output = quiet.call("shell", &arguments, &NoProgress).await.unwrap();
    assert_eq!(output.denial, Some(Denial::Certain));
}

#[tokio::test]
async fn files_that_others_obey_are_not_edited_in_a_sandbox() {
    let house = House::confined();
    house.file(".git/hooks/pre-commit", "exit 0\n");
    house.file(".mcp.toml", "old\n");
    house.link(".git/hooks", "innocent");
    house.link(".mcp.toml", "also-innocent");
    for path in [
        ".git/hooks/pre-commit",
        "innocent/pre-commit",
        "innocent/new",
    ] {
        let written = json!({ "path": path, "content": "exit 1\n" });
        let refusal = house.refusal("write", written).await;
        assert!(refusal.contains("is protected by the sandbox"), "{refusal}");
    }
    let edited = json!({ "path": "also-innocent", "old_string": "old", "new_string": "new" });
    let output = house.call("edit", edited.clone()).await.unwrap();
    assert_eq!(output.denial, Some(Denial::Certain));
    assert_eq!(
        fs::read_to_string(house.inside(".mcp.toml")).unwrap(),
        "old\n"
    );
    let hook = fs::read_to_string(house.inside(".git/hooks/pre-commit")).unwrap();
    assert_eq!(hook, "exit 0\n");
    // They are read as ever, and whoever decides may let them be changed.
    house.text("read", json!({ "path": ".mcp.toml" })).await;
    let free = house.workspace.unconfined();
    free.call("edit", &edited, &NoProgress).await.unwrap();
    assert_eq!(
        fs::read_to_string(house.inside(".mcp.toml")).unwrap(),
        "new\n"
    );
}

#[tokio::test]
async fn clones_with_other_permissions_share_the_workspace() {
    let house = House::new();
    let reading = house.workspace.with_permissions(Permissions::default());
    let written = json!({ "path": "file", "content": "x" });
    let refused = reading.call("write", &written, &NoProgress).await;
    assert!(matches!(refused, Err(ToolError::NotPermitted { .. })));
    let allowed = reading.with_permissions(ALL);
    allowed.call("write", &written, &NoProgress).await.unwrap();
    assert_eq!(reading.root(), house.workspace.root());
    assert!(house.inside("file").exists());
}

#[tokio::test]
async fn without_a_sandbox_nothing_has_to_be_asked() {
    let house = House::new();
    let arguments = json!({ "command": "true", "unconfined": true });
    assert_eq!(house.workspace.asks_to_leave("shell", &arguments), None);
    assert_eq!(house.text("shell", arguments).await, "[exit code 0]");
}

#[tokio::test]
async fn a_workspace_inside_a_reserved_directory_is_reserved_as_a_whole() {
    let write = json!({ "path": "new", "content": "x" });
    let read = json!({ "path": "old" });
    let house = House::confined_by(|workspace| {
        Confinement::read_only().with_protected(workspace.root().parent().unwrap())
    });
    house.file("old", "x");
    assert_eq!(house.text("read", read.clone()).await, "x\n");
    let refusal = house.refusal("write", write.clone()).await;
    assert!(refusal.contains("cocode itself"), "{refusal}");
    let house = House::confined_by(|workspace| {
        Confinement::read_only().with_hidden(workspace.root().parent().unwrap())
    });
    house.file("old", "x");
    let all = [
        ("read", read),
        ("write", write),
        ("list", json!({})),
        ("find", json!({ "glob": "*" })),
        ("grep", json!({ "pattern": "x" })),
    ];
    for (tool, arguments) in all {
        let refusal = house.refusal(tool, arguments).await;
        assert!(refusal.contains("cocode itself"), "{refusal}");
    }
}
