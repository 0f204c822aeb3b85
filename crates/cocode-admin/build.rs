//! Lists the files of the dashboard, so that each of them becomes part of the program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where they are, beside this file.
const DIRECTORY: &str = "dashboard";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={DIRECTORY}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(DIRECTORY);
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut code = String::from("const FILES: &[(&str, &[u8])] = &[\n");
    for file in &files {
        let below = file.strip_prefix(&root).map_err(io::Error::other)?;
        let path = below.to_string_lossy().replace('\\', "/");
        writeln!(
            code,
            "    ({path:?}, include_bytes!({:?})),",
            file.display().to_string()
        )
        .map_err(io::Error::other)?;
    }
    code.push_str("];\n");
    #[expect(
        clippy::disallowed_methods,
        reason = "this is how cargo tells where the code that is made here belongs"
    )]
    let out = std::env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("files.rs"), code)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
