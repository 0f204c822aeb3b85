//! All words of all tools, each with a number; found whole, by how they begin, and although they
//! are misspelled.

use std::collections::HashMap;
use std::sync::Arc;

/// The number of a word.
pub(super) type Term = u32;

/// Words that begin alike, of which no more are of use.
const MAX_BEGINNING_ALIKE: usize = 48;
/// Corrections of one word.
const MAX_CORRECTIONS: usize = 4;
/// Shorter words are not corrected: too many others are near.
const MIN_CORRECTED: usize = 5;
/// Words from this length on may have two mistakes.
const TWO_MISTAKES_FROM: usize = 8;

/// Words and their numbers. Numbers are given out once and stay.
#[derive(Clone, Debug, Default)]
pub(super) struct Vocabulary {
    numbers: HashMap<Arc<str>, Term>,
    texts: Vec<Arc<str>>,
}

/// All words of a vocabulary in order, as of one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted(Vec<Term>);

impl Vocabulary {
    /// The number of a word, which gets one if it has none.
    pub(super) fn number(&mut self, word: &str) -> Term {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = Term::try_from(self.texts.len()).unwrap_or(Term::MAX);
        let text: Arc<str> = word.into();
        self.numbers.insert(Arc::clone(&text), number);
        self.texts.push(text);
        number
    }

    /// The number of a word, if it has one.
    pub(super) fn find(&self, word: &str) -> Option<Term> {
        self.numbers.get(word).copied()
    }

    /// The word of a number.
    pub(super) fn text(&self, term: Term) -> &str {
        let place = usize::try_from(term).unwrap_or(usize::MAX);
        self.texts.get(place).map_or("", |text| text)
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// All words in order. It takes less where some were in order before.
    pub(super) fn sorted(&self, before: &Sorted) -> Sorted {
        let Sorted(mut sorted) = before.clone();
        let known = Term::try_from(sorted.len()).unwrap_or(Term::MAX);
        let all = Term::try_from(self.texts.len()).unwrap_or(Term::MAX);
        sorted.extend(known..all);
        sorted.sort_by(|one, other| self.text(*one).cmp(self.text(*other)));
        Sorted(sorted)
    }

    /// Words that begin with this one and are longer, of those that are used.
    pub(super) fn beginning_with(
        &self,
        Sorted(sorted): &Sorted,
        word: &str,
        is_used: impl Fn(Term) -> bool,
    ) -> impl Iterator<Item = Term> {
        let from = sorted.partition_point(|term| self.text(*term) <= word);
        let rest = sorted.get(from..).unwrap_or_default();
        let alike = rest
            .iter()
            .take_while(move |term| self.text(**term).starts_with(word));
        let used = alike.copied().filter(move |term| is_used(*term));
        used.take(MAX_BEGINNING_ALIKE)
    }

    /// Words that this one may be a misspelling of, of those that are used, with the number of
    /// mistakes: those with the fewest.
    pub(super) fn corrections(
        &self,
        Sorted(sorted): &Sorted,
        word: &str,
        is_used: impl Fn(Term) -> bool,
    ) -> Vec<(String, usize)> {
        let Some(first) = word.get(..1) else {
            return Vec::new();
        };
        let from = sorted.partition_point(|term| self.text(*term) < first);
        let rest = sorted.get(from..).unwrap_or_default();
        let texts = rest
            .iter()
            .map(|term| (*term, self.text(*term)))
            .take_while(|(_, text)| text.starts_with(first))
            .filter(|(term, _)| is_used(*term))
            .map(|(_, text)| text);
        corrections(word, texts)
    }
}

/// Whether a word can be corrected at all.
pub(super) fn is_correctable(word: &str) -> bool {
    word.len() >= MIN_CORRECTED && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Those of the texts that a word may be a misspelling of: those with the fewest mistakes.
pub(super) fn corrections<'a>(
    word: &str,
    texts: impl Iterator<Item = &'a str>,
) -> Vec<(String, usize)> {
    if !is_correctable(word) {
        return Vec::new();
    }
    let most = if word.len() < TWO_MISTAKES_FROM { 1 } else { 2 };
    let letters = letters(word);
    let mut found: Vec<(String, usize)> = Vec::new();
    for text in texts {
        let is_near = text.len().abs_diff(word.len()) <= most
            && (letters ^ self::letters(text)).count_ones() as usize <= 2 * most;
        if !is_near {
            continue;
        }
        let n_mistakes = mistakes(word.as_bytes(), text.as_bytes());
        if (1..=most).contains(&n_mistakes) {
            found.push((text.to_owned(), n_mistakes));
        }
    }
    found.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    found.dedup();
    let fewest = found.first().map_or(0, |(_, fewest)| *fewest);
    found.retain(|(_, n_mistakes)| *n_mistakes == fewest);
    found.truncate(MAX_CORRECTIONS);
    found
}

/// Which letters a word has, as bits.
fn letters(word: &str) -> u32 {
    word.bytes()
        .filter(u8::is_ascii_lowercase)
        .fold(0, |bits, byte| bits | 1 << (byte - b'a'))
}

/// How many letters are missing, too many, wrong, or swapped with their neighbor.
fn mistakes(one: &[u8], other: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    let mut last = None;
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        let mut left = None;
        for (column, wanted) in other.iter().enumerate() {
            let at =
                |line: &[usize], place: usize| line.get(place).copied().unwrap_or(usize::MAX / 2);
            let changed = at(&above, column) + usize::from(letter != wanted);
            let mut least = changed.min(at(&above, column + 1) + 1);
            least = least.min(at(&current, column) + 1);
            if last == Some(wanted) && left == Some(letter) {
                least = least.min(at(&before, column.wrapping_sub(1)) + 1);
            }
            current.push(least);
            left = Some(wanted);
        }
        before = std::mem::replace(&mut above, current);
        last = Some(letter);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Sorted, Vocabulary, mistakes};

    fn vocabulary(words: &str) -> Vocabulary {
        let mut vocabulary = Vocabulary::default();
        for word in words.split(' ') {
            vocabulary.number(word);
        }
        vocabulary
    }

    fn sorted(vocabulary: &Vocabulary) -> Sorted {
        vocabulary.sorted(&Sorted::default())
    }

    #[track_caller]
    fn check_corrections(word: &str, expected: &[&str]) {
        let vocabulary =
            vocabulary("calendar browser calculate download weather whether trend tree");
        let found = vocabulary.corrections(&sorted(&vocabulary), word, |_| true);
        let found: Vec<_> = found.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(found, expected, "{word}");
    }

    #[test]
    fn misspelled_words_are_corrected() {
        check_corrections("calender", &["calendar"]);
        check_corrections("broswer", &["browser"]);
        check_corrections("caculate", &["calculate"]);
        check_corrections("donwnload", &["download"]);
        check_corrections("treend", &["trend"]);
    }

    #[test]
    fn what_is_near_to_nothing_stays() {
        check_corrections("banana", &[]);
        check_corrections("tree", &[]);
        check_corrections("trea", &[]);
        check_corrections("", &[]);
        check_corrections("wéather", &[]);
    }

    #[test]
    fn words_are_found_by_how_they_begin_also_those_that_came_later() {
        let mut vocabulary = vocabulary("calendar call");
        let found = |vocabulary: &Vocabulary, sorted: &Sorted| {
            let found = vocabulary.beginning_with(sorted, "cal", |_| true);
            let found = found.map(|term| vocabulary.text(term).to_owned());
            found.collect::<Vec<_>>()
        };
        let before = sorted(&vocabulary);
        assert_eq!(found(&vocabulary, &before), ["calendar", "call"]);
        for word in ["calculate", "cal", "cam"] {
            vocabulary.number(word);
        }
        let now = vocabulary.sorted(&before);
        assert_eq!(found(&vocabulary, &now), ["calculate", "calendar", "call"]);
        assert_eq!(vocabulary.len(), 5);
    }

    #[test]
    fn mistakes_are_counted() {
        for (one, other, expected) in [
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "ab", 1),
            ("ab", "abc", 1),
            ("abc", "axc", 1),
            ("abcd", "badc", 2),
            ("", "abc", 3),
        ] {
            let counted = mistakes(one.as_bytes(), other.as_bytes());
            assert_eq!(counted, expected, "{one} {other}");
        }
    }
}
