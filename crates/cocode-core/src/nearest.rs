//! Finds the names that somebody may have meant.

/// How many suggestions are made at most.
const MAX_SUGGESTIONS: usize = 3;

/// Longer names are not compared: that takes its time, and nobody mistypes them.
const MAX_COMPARED_BYTES: usize = 256;

/// The names that are close to `wanted`, closest first.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if wanted.len() > MAX_COMPARED_BYTES {
        return Vec::new();
    }
    let folded = wanted.to_lowercase();
    let mut scored: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| Some((score(&folded, &name.to_lowercase())?, name)))
        .collect();
    scored.sort_unstable();
    scored
        .into_iter()
        .map(|(_, name)| name)
        .take(MAX_SUGGESTIONS)
        .collect()
}

/// Smaller is closer; nothing if the two have little in common.
fn score(wanted: &str, name: &str) -> Option<usize> {
    let distance = distance(wanted, name);
    let allowed = wanted.chars().count().max(3) / 3;
    if distance <= allowed {
        return Some(distance);
    }
    let contained = wanted.len() >= 3 && (name.contains(wanted) || wanted.contains(name));
    (contained && !name.is_empty()).then_some(allowed + distance)
}

/// How many letters have to be inserted, removed, replaced or swapped with their neighbor.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous = None;
    for (row, letter) in left.chars().enumerate() {
        let mut current = Vec::with_capacity(last.len());
        current.push(row + 1);
        for (column, other) in right.iter().enumerate() {
            let replaced = at(&last, column) + usize::from(letter != *other);
            let mut best = replaced
                .min(at(&last, column + 1) + 1)
                .min(at(&current, column) + 1);
            let swapped =
                column > 0 && previous == Some(*other) && right.get(column - 1) == Some(&letter);
            if swapped {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            current.push(best);
        }
        previous = Some(letter);
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or(0)
}

fn at(row: &[usize], column: usize) -> usize {
    row.get(column).copied().unwrap_or(usize::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_count_single_edits() {
        for (left, right, expected) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "abd", 1),
            ("abc", "acb", 1),
            ("abc", "ab", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn typos_and_parts_of_names_are_recognized() {
        let names = ["read_file", "write_file", "list_directory", "echo"];
        assert_eq!(nearest("read_fiel", names), ["read_file"]);
        assert_eq!(nearest("ECHO", names), ["echo"]);
        assert_eq!(nearest("file", names), ["read_file", "write_file"]);
        assert_eq!(nearest("zzz", names), [""; 0]);
    }
}
