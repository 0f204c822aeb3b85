//! Servers that are added, removed, switched and connected.

use cocode_admin::model::{NewServer, RemoteTransport, Scope, ServerState};
use cocode_admin::{House as _, RefusalStatus, Secret, Switch};
use cocode_testkit::Script;

use super::stage::{Files, Stage, ana, entry, play};

fn wanted(name: &str) -> NewServer {
    NewServer {
        name: name.to_owned(),
        scope: None,
        command: None,
        args: None,
        env: None,
        cwd: None,
        url: None,
        headers: None,
        transport: None,
        description: None,
    }
}

fn scripted(name: &str, script: &Script) -> NewServer {
    let (program, args) = script.command();
    NewServer {
        command: Some(program.to_str().unwrap().to_owned()),
        args: Some(args),
        ..wanted(name)
    }
}

#[tokio::test]
async fn a_server_that_is_added_stands_in_its_file_and_is_there() {
    play(Files::with(""), async |stage| {
        let new = NewServer {
            env: Some([("TOKEN".to_owned(), Secret::new("${SOME_TOKEN:-none}"))].into()),
            description: Some("Echoes.".to_owned()),
            ..scripted("new", &Script::new())
        };
        let added = stage.house.add_server(ana(), new.clone()).await.unwrap();
        assert_eq!((added.name.as_str(), added.scope.as_str()), ("new", "user"));
        stage.connected("new").await;
        let file = stage.files.read_user("mcp.toml");
        assert!(file.contains("[mcp_servers.new]"), "{file}");
        assert!(file.contains("${SOME_TOKEN:-none}"), "{file}");
        let taken = stage.house.add_server(ana(), new).await.unwrap_err();
        assert_eq!(
            (taken.status, taken.code.as_str()),
            (RefusalStatus::Conflict, "already-there")
        );

        let shared = NewServer {
            scope: Some(Scope::Project),
            ..scripted("shared", &Script::new())
        };
        let shared = stage.house.add_server(ana(), shared).await.unwrap();
        // What is written for somebody needs no approval by them.
        assert_ne!(shared.state, ServerState::Pending);
        assert!(shared.file.unwrap().ends_with("project/.mcp.toml"));

        stage.house.remove_server(ana(), "new").await.unwrap();
        let gone = stage.house.server("new").await.unwrap_err();
        assert_eq!(gone.status, RefusalStatus::Unknown);
        assert!(
            !stage
                .files
                .read_user("mcp.toml")
                .contains("mcp_servers.new")
        );
        let again = stage.house.remove_server(ana(), "new").await.unwrap_err();
        assert_eq!(again.status, RefusalStatus::Unknown);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_a_server_is_not_written() {
    play(Files::with(""), async |stage| {
        let bad_url = NewServer {
            url: Some("ftp://example.com".to_owned()),
            transport: Some(RemoteTransport::Http),
            ..wanted("web")
        };
        let nothing = wanted("nothing");
        for (what, new) in [("url", bad_url), ("nothing", nothing)] {
            let refused = stage.house.add_server(ana(), new).await.unwrap_err();
            assert_eq!(refused.status, RefusalStatus::Unfit, "{what}: {refused:?}");
        }
        assert_eq!(stage.files.read_user("mcp.toml"), "");
    })
    .await;
}

async fn switched(stage: &Stage, name: &str, switch: Switch) -> ServerState {
    let server = stage.house.switch_server(ana(), name, switch).await;
    server.unwrap().state
}

#[tokio::test]
async fn servers_are_switched_off_and_on_in_their_file() {
    let files = Files::with(&entry("good", &Script::new(), ""));
    play(files, async |stage| {
        stage.connected("good").await;
        assert_eq!(
            switched(stage, "good", Switch::Disable).await,
            ServerState::Disabled
        );
        assert!(
            stage
                .files
                .read_user("mcp.toml")
                .contains("enabled = false")
        );
        let refused = stage
            .house
            .switch_server(ana(), "good", Switch::Connect)
            .await;
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (RefusalStatus::Conflict, "server-disabled")
        );
        // Once more changes nothing.
        assert_eq!(
            switched(stage, "good", Switch::Disable).await,
            ServerState::Disabled
        );
        assert_ne!(
            switched(stage, "good", Switch::Enable).await,
            ServerState::Disabled
        );
        stage.connected("good").await;
        let unknown = stage
            .house
            .switch_server(ana(), "none", Switch::Enable)
            .await;
        assert_eq!(unknown.unwrap_err().status, RefusalStatus::Unknown);
    })
    .await;
}

#[tokio::test]
async fn servers_are_disconnected_connected_and_started_anew() {
    let server = Script::new().stdio();
    let text = {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let args: Vec<String> = server.args().iter().map(|arg| quoted(arg)).collect();
        let program = quoted(server.program().to_str().unwrap());
        format!(
            "[mcp_servers.good]\ncommand = {program}\nargs = [{}]\n",
            args.join(", ")
        )
    };
    play(Files::with(&text), async |stage| {
        let first = stage.connected("good").await.pid.unwrap();
        assert_eq!(
            switched(stage, "good", Switch::Disconnect).await,
            ServerState::Stopped
        );
        assert_eq!(server.ends().all().len(), 1);
        let second = stage.connected("good").await.pid.unwrap();
        assert_ne!(first, second);
        assert_eq!(
            switched(stage, "good", Switch::Restart).await,
            ServerState::Ready
        );
        let third = stage.house.server("good").await.unwrap().pid.unwrap();
        assert_ne!(second, third);
        let unknown = stage
            .house
            .switch_server(ana(), "none", Switch::Restart)
            .await;
        assert_eq!(unknown.unwrap_err().status, RefusalStatus::Unknown);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_cannot_be_connected_says_so_by_its_state() {
    let files = Files::with("[mcp_servers.missing]\ncommand = '/nonexistent/server'\n");
    play(files, async |stage| {
        assert_eq!(
            switched(stage, "missing", Switch::Connect).await,
            ServerState::Failed
        );
    })
    .await;
}
