//! Merging and expansion against a simple model of both, over random servers in all scopes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cocode_config::{
    Approval, EditContext, Loss, Scope, State, TrustContent, TrustItem, TrustStore,
};
use cocode_core::Reach;
use proptest::prelude::*;

use crate::room::Room;

const NAMES: [&str; 3] = ["a", "b", "c"];
const VARIABLES: [&str; 3] = ["V0", "V1", "V2"];

const JSON_FILE: &str = "work/.mcp.json";

/// The files of a machine, most important first, and the scope of each.
const FILES: [(&str, Scope); 7] = [
    ("system/managed-mcp.toml", Scope::Enterprise),
    ("explicit.toml", Scope::Explicit),
    ("work/.cocode.local.toml", Scope::Local),
    ("work/.mcp.toml", Scope::Project),
    (JSON_FILE, Scope::Project),
    ("user/mcp.toml", Scope::User),
    ("plugin/.mcp.toml", Scope::Plugin),
];

/// A piece of a value, which the model expands by itself.
#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Variable(usize),
    Default(usize, String),
    Nested(usize, usize, String),
    Escaped,
}

#[derive(Clone, Debug)]
struct Given {
    is_broken: bool,
    is_approved: bool,
    is_disabled: bool,
    args: Vec<Vec<Piece>>,
    env: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Machine {
    has_managed: bool,
    has_explicit: bool,
    /// For each file, for each name.
    servers: Vec<Vec<Option<Given>>>,
    overrides: Vec<(usize, bool)>,
    variables: Vec<Option<String>>,
}

fn piece() -> impl Strategy<Value = Piece> {
    let text = || "[a-z ü:{}-]{0,6}";
    prop_oneof![
        text().prop_map(Piece::Text),
        (0..3_usize).prop_map(Piece::Variable),
        (0..3_usize, "[a-z -]{0,4}").prop_map(|(at, text)| Piece::Default(at, text)),
        (0..3_usize, 0..3_usize, "[a-z]{0,4}").prop_map(|(a, b, text)| Piece::Nested(a, b, text)),
        Just(Piece::Escaped),
    ]
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    prop::collection::vec(piece(), 0..4)
}

fn given_server() -> impl Strategy<Value = Given> {
    let often = prop::bool::weighted;
    let args = prop::collection::vec(pieces(), 0..3);
    (often(0.2), often(0.6), often(0.2), args, pieces()).prop_map(
        |(is_broken, is_approved, is_disabled, args, env)| Given {
            is_broken,
            is_approved,
            is_disabled,
            args,
            env,
        },
    )
}

fn machine() -> impl Strategy<Value = Machine> {
    let server = prop::option::weighted(0.5, given_server());
    let file = prop::collection::vec(server, NAMES.len());
    (
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.15),
        prop::collection::vec(file, FILES.len()),
        prop::collection::vec((0..NAMES.len(), any::<bool>()), 0..3),
        prop::collection::vec(
            prop::option::weighted(0.7, "[a-z${}]{0,5}"),
            VARIABLES.len(),
        ),
    )
        .prop_map(
            |(has_managed, has_explicit, servers, overrides, variables)| Machine {
                has_managed,
                has_explicit,
                servers,
                overrides,
                variables,
            },
        )
}

/// A value as a file has it.
fn written(pieces: &[Piece]) -> String {
    let write = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Variable(at) => format!("${{V{at}}}"),
        Piece::Default(at, text) => format!("${{V{at}:-{text}}}"),
        Piece::Nested(a, b, text) => format!("${{V{a}:-${{V{b}:-{text}}}}}"),
        Piece::Escaped => "$${".to_owned(),
    };
    pieces.iter().map(write).collect()
}

/// A value as it should be, or nothing if a variable is missing.
fn expanded(pieces: &[Piece], variables: &[Option<String>]) -> Option<String> {
    let filled = |at: usize| variables[at].clone().filter(|value| !value.is_empty());
    let expand = |piece: &Piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Variable(at) => variables[*at].clone(),
        Piece::Default(at, text) => Some(filled(*at).unwrap_or_else(|| text.clone())),
        Piece::Nested(a, b, text) => Some(
            filled(*a)
                .or_else(|| filled(*b))
                .unwrap_or_else(|| text.clone()),
        ),
        Piece::Escaped => Some("${".to_owned()),
    };
    pieces.iter().map(expand).collect()
}

impl Machine {
    fn counts(&self, scope: Scope) -> bool {
        match scope {
            Scope::Enterprise => self.has_managed,
            Scope::Explicit => self.has_explicit && !self.has_managed,
            _ => !self.has_managed && !self.has_explicit,
        }
    }

    fn room(&self) -> Room {
        let mut room = Room::quick();
        if self.has_explicit {
            room.places.explicit = vec![room.root.join("explicit.toml")];
        }
        for ((path, scope), servers) in FILES.iter().zip(&self.servers) {
            if *scope == Scope::Enterprise && !self.has_managed {
                continue;
            }
            let mut text = if *path == JSON_FILE {
                json(servers)
            } else {
                toml(servers)
            };
            if *scope == Scope::User {
                for (name, enabled) in &self.overrides {
                    let name = NAMES[*name];
                    write!(
                        text,
                        "[[overrides]]\nserver = \"{name}\"\nenabled = {enabled}\n"
                    )
                    .unwrap();
                }
            }
            room.write(path, text);
        }
        let plugin = room.root.join("plugin");
        room.write(
            "user/plugins.toml",
            format!("[[plugins]]\npath = {:?}\n", plugin.to_str().unwrap()),
        );
        self.approve(&room);
        room
    }

    fn approve(&self, room: &Room) {
        let config = room.load();
        let context = EditContext::new(room.places.locks());
        let mut store = TrustStore::load(room.places.approvals()).unwrap();
        for (name, server) in &config.servers {
            let others = server.others.iter().map(|(other, _)| other);
            for candidate in std::iter::once(&server.winner).chain(others) {
                let name_at = NAMES.iter().position(|one| one == name).unwrap();
                let at = file_of(&candidate.found.origin.file);
                if self.servers[at][name_at].as_ref().unwrap().is_approved {
                    let item = TrustItem {
                        file: &candidate.found.origin.file,
                        name,
                        content: TrustContent::Server(&candidate.found.entry),
                    };
                    store
                        .approve(&context, &item, Approval::Approved, 1)
                        .unwrap();
                }
            }
        }
    }
}

/// Which file of the table a path is.
fn file_of(path: &std::path::Path) -> usize {
    FILES
        .iter()
        .position(|(file, _)| path.ends_with(file))
        .unwrap()
}

fn toml(servers: &[Option<Given>]) -> String {
    let mut text = String::new();
    for (name, given) in NAMES.iter().zip(servers) {
        let Some(given) = given else { continue };
        let args: Vec<_> = given.args.iter().map(|arg| written(arg)).collect();
        let env = written(&given.env);
        // A text of JSON is one of TOML, too.
        write!(
            text,
            "[mcp_servers.{name}]\ncommand = \"run\"\nargs = {}\n",
            serde_json::json!(args)
        )
        .unwrap();
        if given.is_disabled {
            text += "enabled = false\n";
        }
        if given.is_broken {
            text += "cwd = 1\n";
        }
        writeln!(text, "env = {{ E = {} }}", serde_json::json!(env)).unwrap();
    }
    text
}

fn json(servers: &[Option<Given>]) -> String {
    let mut table = serde_json::Map::new();
    for (name, given) in NAMES.iter().zip(servers) {
        let Some(given) = given else { continue };
        let args: Vec<_> = given.args.iter().map(|arg| written(arg)).collect();
        let mut entry = serde_json::json!({
            "command": "run", "args": args, "env": {"E": written(&given.env)}, "disabled": given.is_disabled,
        });
        if given.is_broken {
            entry["cwd"] = serde_json::json!(1);
        }
        table.insert((*name).to_owned(), entry);
    }
    serde_json::json!({ "mcpServers": table }).to_string()
}

/// What a server should come to: its file, its state, the others, and what is run.
type Expected = (
    usize,
    &'static str,
    Vec<(usize, Loss)>,
    Option<(Vec<String>, String)>,
);

fn model(machine: &Machine, name: usize) -> Option<Expected> {
    let mut good = Vec::new();
    let mut waiting = Vec::new();
    let mut broken = Vec::new();
    // Broken ones that are no stranger's: nothing below them is used instead.
    let mut in_the_way = Vec::new();
    let mut all = Vec::new();
    for (at, (_, scope)) in FILES.iter().enumerate() {
        let Some(given) = &machine.servers[at][name] else {
            continue;
        };
        if !machine.counts(*scope) {
            continue;
        }
        all.push(at);
        let needs = matches!(scope, Scope::Local | Scope::Project | Scope::Plugin);
        if given.is_broken {
            broken.push(at);
            if !needs || given.is_approved {
                in_the_way.push(at);
            }
        } else if needs && !given.is_approved {
            waiting.push(at);
        } else {
            good.push(at);
        }
    }
    let best = *good.first().or(waiting.first()).or(broken.first())?;
    let stopped = in_the_way.into_iter().find(|at| *at < best);
    let winner = stopped.unwrap_or(best);
    let others = all.iter().filter(|at| **at != winner).map(|at| {
        let loss = if broken.contains(at) {
            Loss::Broken
        } else if waiting.contains(at) {
            Loss::Pending
        } else {
            Loss::Shadowed
        };
        (*at, loss)
    });
    let others = others.collect();
    let given = machine.servers[winner][name].as_ref()?;
    let is_foreign = matches!(FILES[winner].1, Scope::Project | Scope::Plugin);
    let decided = machine
        .overrides
        .iter()
        .rfind(|(server, _)| *server == name);
    let is_enabled = match decided {
        Some((_, enabled)) if is_foreign => *enabled,
        _ => !given.is_disabled,
    };
    let args: Option<Vec<_>> = given
        .args
        .iter()
        .map(|arg| expanded(arg, &machine.variables))
        .collect();
    let run = args.zip(expanded(&given.env, &machine.variables));
    Some(if broken.contains(&winner) {
        (winner, "invalid", others, None)
    } else if good.is_empty() {
        (winner, "pending", others, None)
    } else if !is_enabled {
        (winner, "disabled", others, None)
    } else if run.is_none() {
        (winner, "invalid", others, None)
    } else {
        (winner, "ready", others, run)
    })
}

/// The variables of the machine.
fn lookup(machine: &Machine) -> impl Fn(&str) -> Option<String> {
    let names = VARIABLES.iter().zip(&machine.variables);
    let known: BTreeMap<_, _> = names
        .filter_map(|(name, value)| Some((*name, value.clone()?)))
        .collect();
    move |name| known.get(name).cloned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn servers_come_to_what_the_model_says(machine in machine()) {
        let room = machine.room();
        let config = room.load_with(&lookup(&machine));
        for (index, name) in NAMES.iter().enumerate() {
            let actual = config.servers.get(*name).map(|server| {
                let others = server.others.iter();
                let others = others.map(|(one, loss)| (file_of(&one.found.origin.file), *loss));
                let run = match &server.state {
                    State::Ready(spec) => match &spec.reach {
                        Reach::Program(program) => {
                            assert_eq!(program.command, "run");
                            let env = program.env.get("E").and_then(cocode_core::Template::as_literal);
                            Some((program.args.clone(), env.unwrap()))
                        }
                        Reach::Remote(_) => None,
                    },
                    _ => None,
                };
                let winner = file_of(&server.winner.found.origin.file);
                (winner, server.state.as_str(), others.collect::<Vec<_>>(), run)
            });
            let expected = model(&machine, index);
            let above = expected.as_ref().map(|(winner, _, others, _)| {
                others.iter().filter(|(at, _)| at < winner).count()
            });
            let passed_over = config.servers.get(*name).map(|server| server.passed_over().len());
            prop_assert_eq!(passed_over, above, "{}", name);
            prop_assert_eq!(actual, expected, "{}", name);
        }
    }
}
