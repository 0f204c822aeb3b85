//! Files that can be mentioned: those below a directory, without what version control ignores.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

/// Files and directories below this one, sorted, as paths relative to it; directories end with a
/// slash. Blocks.
pub(super) fn below(directory: &Path, depth: Option<usize>, most: usize) -> Vec<PathBuf> {
    let walk = WalkBuilder::new(directory)
        .max_depth(depth)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .build();
    let entries = walk.filter_map(Result::ok).filter_map(|entry| {
        let relative = entry.path().strip_prefix(directory).ok()?;
        if relative.as_os_str().is_empty() {
            return None;
        }
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        Some(if is_directory {
            relative.join("")
        } else {
            relative.to_owned()
        })
    });
    entries.take(most).collect()
}

/// How well a path fits what was typed: less is better. Nothing if it does not.
pub(super) fn rank(path: &str, typed: &str) -> Option<(u8, usize)> {
    let (path, typed) = (path.to_lowercase(), typed.to_lowercase());
    let name = path.trim_end_matches('/');
    let name = name.rsplit('/').next().unwrap_or(name);
    let class = if path.starts_with(&typed) {
        0
    } else if name.starts_with(&typed) {
        1
    } else if name.contains(&typed) {
        2
    } else if path.contains(&typed) {
        3
    } else if is_scattered(&path, &typed) {
        4
    } else {
        return None;
    };
    Some((class, path.len()))
}

/// Whether the characters are all there, in their order.
fn is_scattered(path: &str, typed: &str) -> bool {
    let mut characters = path.chars();
    typed
        .chars()
        .all(|wanted| characters.any(|found| found == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_not_offered() {
        let place = tempfile::tempdir().unwrap();
        for name in ["src/main.rs", "target/out", ".hidden", "README.md"] {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::write(place.path().join(".gitignore"), "target\n").unwrap();
        let all = below(place.path(), None, 100);
        let all: Vec<&str> = all.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(all, ["README.md", "src/", "src/main.rs"]);
        assert_eq!(below(place.path(), None, 2).len(), 2);
    }

    #[test]
    fn the_name_counts_more_than_the_way_to_it() {
        let mut paths = [
            "src/app/view.rs",
            "view/other.rs",
            "src/viewing.rs",
            "docs/v-i-e-w",
            "none",
        ];
        paths.sort_by_key(|path| rank(path, "view").unwrap_or((u8::MAX, 0)));
        assert_eq!(
            paths,
            [
                "view/other.rs",
                "src/viewing.rs",
                "src/app/view.rs",
                "docs/v-i-e-w",
                "none"
            ]
        );
        assert_eq!(rank("none", "view"), None);
    }
}
