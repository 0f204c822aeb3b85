//! `configured`: `cocode mcp list` with fifty servers in five files, against a program that does
//! nothing at all.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use super::Runtime;
use crate::Failure;
use crate::load::{Round, Stopwatch};
use crate::report::{Better, Case, Findings, Series, Target};
use crate::turns::schedule;

const CYCLES: usize = 4;
const STARTS: usize = 25;
const FILES: usize = 5;
const SERVERS_PER_FILE: usize = 10;

pub(super) fn run() -> Result<Findings, Failure> {
    let program = std::env::current_exe()?.with_file_name("cocode");
    if !program.is_file() {
        let message = "the program `cocode` is not built beside this one: cargo xtask bench";
        return Err(message.into());
    }
    Runtime::OneThread.run(measure(program))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starter {
    Nothing,
    List,
}

async fn measure(program: PathBuf) -> Result<Findings, Failure> {
    let scene = Scene::make()?;
    let mut rounds: Vec<(Starter, Round)> = Vec::new();
    for turn in schedule(&[Starter::Nothing, Starter::List], CYCLES) {
        let mut watch = Stopwatch::start(STARTS);
        for _ in 0..STARTS {
            match turn.client {
                Starter::Nothing => watch.time(scene.run(Path::new("true"), &[])).await?,
                Starter::List => {
                    let words = ["mcp", "list", "--json"];
                    watch.time(scene.run(&program, &words)).await?;
                }
            }
        }
        if turn.is_counted {
            rounds.push((turn.client, watch.stop()));
        }
    }
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1e3;
    Ok(Findings {
        cases: vec![Case {
            name: "list of 50 servers in 5 files".to_owned(),
            unit: "ms",
            better: Better::Lower,
            ours: Series::among(&rounds, &Starter::List, "cocode", |round| {
                milliseconds(round.median)
            }),
            against: vec![Series::among(
                &rounds,
                &Starter::Nothing,
                "3 x true + 10 ms",
                |round| 3.0 * milliseconds(round.median) + 10.0,
            )],
            sdk: None,
            target: Some(Target::AtMost(1.0)),
        }],
        notes: Vec::new(),
    })
}

/// A user with a project, a home and a plugin, each with servers.
struct Scene(PathBuf);

impl Scene {
    fn make() -> Result<Self, Failure> {
        let root = std::env::temp_dir().join(format!("cocode-bench-{}", std::process::id()));
        let scene = Self(root.clone());
        for directory in ["project/.git", "home", "plugin"] {
            std::fs::create_dir_all(root.join(directory))?;
        }
        let plugin = root.join("plugin");
        let list = format!("[[plugins]]\npath = '{}'\n", plugin.display());
        std::fs::write(root.join("home/plugins.toml"), list)?;
        let files: [&str; FILES] = [
            "project/.cocode.local.toml",
            "project/.mcp.toml",
            "project/.mcp.json",
            "home/mcp.toml",
            "plugin/.mcp.json",
        ];
        for (number, file) in files.into_iter().enumerate() {
            std::fs::write(root.join(file), servers(number, file.ends_with("json"))?)?;
        }
        Ok(scene)
    }

    async fn run(&self, program: &Path, words: &[&str]) -> Result<(), Failure> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a whole command is timed, not a server"
        )]
        let mut command = Command::new(program);
        let output = command
            .args(words)
            .current_dir(self.0.join("project"))
            .env("COCODE_HOME", self.0.join("home"))
            .output()
            .await?;
        let n_listed = String::from_utf8_lossy(&output.stdout)
            .matches("\"name\"")
            .count();
        let expected = if words.is_empty() {
            0
        } else {
            FILES * SERVERS_PER_FILE
        };
        if !output.status.success() || n_listed != expected {
            return Err(format!("{} listed {n_listed} servers", program.display()).into());
        }
        Ok(())
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // What is left in a temporary directory harms nobody.
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

fn servers(file: usize, is_json: bool) -> Result<String, Failure> {
    let mut text = String::new();
    for server in 0..SERVERS_PER_FILE {
        let name = format!("server-{file}-{server}");
        if is_json {
            let comma = if server == 0 { "" } else { "," };
            write!(
                text,
                "{comma}\"{name}\":{{\"command\":\"npx\",\"args\":[\"-y\",\"{name}\"],\
                 \"env\":{{\"PLACE\":\"${{HOME:-none}}\"}}}}"
            )?;
        } else {
            write!(
                text,
                "[mcp_servers.{name}]\ncommand = 'npx'\nargs = ['-y', '{name}']\n\
                 env = {{ PLACE = '${{HOME:-none}}' }}\n\n"
            )?;
        }
    }
    Ok(if is_json {
        format!("{{\"mcpServers\":{{{text}}}}}")
    } else {
        text
    })
}
