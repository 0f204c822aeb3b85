//! Boundaries around texts of servers that are shown together.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

/// Token of the lines around each of these texts, by which a reader tells where a server's text ends.
///
/// It is a keyed hash of all texts, with a key of this process: equal texts have the same boundary, and a
/// server that has learned one cannot put it into its text without changing it.
pub fn boundary_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let texts: Vec<&str> = texts.into_iter().collect();
    format!("{:016x}", KEY.hash_one(texts))
}

#[cfg(test)]
mod tests {
    use super::boundary_of;

    #[test]
    fn boundary_changes_with_every_text() {
        let boundary = boundary_of(["one", "two"]);
        assert_eq!(boundary, boundary_of(["one", "two"]));
        assert_ne!(boundary, boundary_of(["one", &format!("two {boundary}")]));
        assert_ne!(boundary, boundary_of(["onetwo"]));
    }
}
