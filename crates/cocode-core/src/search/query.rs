//! What a query asks for: its words with all that they may mean, and its parts, where it asks for
//! several things at once.

use std::collections::HashMap;

use super::clauses::Clauses;
use super::concepts::Concepts;
use super::index::ToolIndex;
use super::paths::mention_in;
use super::stem::stem;
use super::vocabulary::{Term, corrections, is_correctable};
use super::words::all_words;

/// Bytes of a query that are read.
const MAX_QUERY_BYTES: usize = 8_000;
/// Different words of a query that count.
const MAX_ROWS: usize = 96;
/// Parts of a query that count by themselves.
const MAX_PARTS: usize = 24;
/// Words that a part has to have.
const MIN_PART_WORDS: usize = 2;
/// Letters of a word that may be the beginning of others.
const MIN_BEGINNING: usize = 4;

/// What a word that means nearly the same counts.
const RELATED: f32 = 0.6;
/// What a word counts that begins with the one that was asked for, and is hardly longer.
const BEGINS: f32 = 0.5;
/// What a word counts that was asked for with one mistake.
const CORRECTED: f32 = 0.7;
/// What two words count that are written as one.
const JOINED: f32 = 0.8;
/// What a word counts that most tools have.
const GENERIC: f32 = 0.7;
/// What is added when a word comes again.
const AGAIN: f32 = 0.3;
/// What a name counts that somebody knows by heart.
const BY_HEART: f32 = 3.0;
/// What a word counts that only follows from a path.
const IMPLIED: f32 = 0.8;

/// A query, read.
#[derive(Debug, Default)]
pub(super) struct Query {
    /// One for each word that counts.
    pub(super) rows: Vec<Row>,
    /// How many of them are of the query as a whole; the others are of single parts.
    pub(super) n_whole: usize,
    pub(super) parts: Vec<Part>,
    /// Names of tools that are mentioned, as the words that they have.
    pub(super) names: Vec<Box<[Term]>>,
}

/// A word of a query, and the words of tools that it may mean.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) word: String,
    pub(super) weight: f32,
    pub(super) meanings: Vec<Meaning>,
}

/// What a word of a query may mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meaning {
    pub(super) term: Term,
    /// How near it is: one, if it is the same.
    pub(super) weight: f32,
    /// What it counts where it stands: the more, the rarer it is, but never more than the word that
    /// was asked for.
    pub(super) worth: f32,
    pub(super) kin: Kin,
}

/// How a word of a tool is related to the one that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kin {
    Same,
    Joined,
    Related,
    Begins,
    Corrected,
}

/// One of several things that a query asks for.
#[derive(Debug)]
pub(super) struct Part {
    /// In words, for people.
    pub(super) text: String,
    pub(super) rows: Vec<usize>,
}

impl Query {
    pub(super) fn read(text: &str, index: &ToolIndex) -> Self {
        let (text, _) = text.split_at(text.floor_char_boundary(MAX_QUERY_BYTES));
        let concepts = Concepts::get();
        let clauses = Clauses::of(text);
        let mut reader = RowMaker {
            index,
            concepts,
            rows: Vec::new(),
            places: HashMap::new(),
        };
        let mut parts = Vec::new();
        for clause in &clauses.said {
            let rows = reader.clause(clause, Silence::IsKept);
            parts.push((clause.join(" "), rows));
        }
        if reader.rows.is_empty() {
            // Who asks with nothing but such words means a tool that is called so.
            for clause in &clauses.said {
                reader.clause(clause, Silence::IsBroken);
            }
        }
        for token in text.split_whitespace().filter(|token| is_identifier(token)) {
            reader.identifier(token);
        }
        for mention in &clauses.mentions {
            for word in mention.implied_words() {
                reader.implied(word);
            }
        }
        reader.leave_each_word_to_one();
        let n_whole = reader.rows.len();
        parts.retain(|(_, rows)| rows.len() >= MIN_PART_WORDS);
        if parts.len() < 2 {
            parts.clear();
        }
        // What is done with files is a thing by itself, whatever else is asked for.
        let mut asked: Vec<String> = Vec::new();
        for (mention, is_read) in clauses.mentions.iter().zip(&clauses.is_read) {
            let Some(asks) = mention.asks_for(*is_read) else {
                continue;
            };
            if !asked.contains(&asks) {
                let rows = reader.apart(&all_words(&asks));
                parts.push((asks.clone(), rows));
                asked.push(asks);
            }
        }
        let parts = parts.into_iter().take(MAX_PARTS);
        let parts = parts.map(|(text, rows)| Part { text, rows });
        Self {
            n_whole,
            parts: parts.collect(),
            names: names(text, index),
            rows: reader.rows,
        }
    }
}

/// Whether words that say nothing about tools count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    IsKept,
    IsBroken,
}

/// Makes rows of words.
struct RowMaker<'a> {
    index: &'a ToolIndex,
    concepts: &'static Concepts,
    rows: Vec<Row>,
    places: HashMap<String, usize>,
}

impl RowMaker<'_> {
    /// The rows of the words of a clause.
    fn clause(&mut self, words: &[String], silence: Silence) -> Vec<usize> {
        let mut places = Vec::new();
        let mut before: Option<(&String, usize)> = None;
        for word in words {
            let counts = match silence {
                Silence::IsKept => !self.concepts.is_silent(word),
                Silence::IsBroken => self.is_in_a_name(word),
            };
            if !counts {
                before = None;
                continue;
            }
            let Some(place) = self.counted(word) else {
                continue;
            };
            if let Some((first, first_place)) = before {
                self.join(first, first_place, word, place);
            }
            before = (!self.concepts.is_generic(word)).then_some((word, place));
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    fn is_in_a_name(&self, word: &str) -> bool {
        let term = self.index.find(word);
        term.is_some_and(|term| !self.index.named_by(term).is_empty())
    }

    fn counted(&mut self, word: &str) -> Option<usize> {
        let weight = self.weight(word);
        let Some(place) = self.places.get(word).copied() else {
            return self.row(word, weight);
        };
        if let Some(row) = self.rows.get_mut(place) {
            row.weight += AGAIN * weight;
        }
        Some(place)
    }

    /// A name that somebody knows by heart.
    fn identifier(&mut self, token: &str) {
        let whole = all_words(token).concat();
        if self.index.find(&whole).is_some()
            && let Some(row) = self
                .counted(&whole)
                .and_then(|place| self.rows.get_mut(place))
        {
            row.weight = BY_HEART;
        }
    }

    /// A word that only follows from what is said.
    fn implied(&mut self, word: &str) {
        let mut word = word.to_owned();
        stem(&mut word);
        if !self.places.contains_key(&word) {
            let weight = IMPLIED * self.weight(&word);
            self.row(&word, weight);
        }
    }

    /// Rows that belong to nothing else.
    fn apart(&mut self, words: &[String]) -> Vec<usize> {
        let known = std::mem::take(&mut self.places);
        let rows = words
            .iter()
            .filter_map(|word| self.row(word, self.weight(word)))
            .collect();
        self.places = known;
        rows
    }

    fn weight(&self, word: &str) -> f32 {
        if self.concepts.is_generic(word) {
            GENERIC
        } else {
            1.0
        }
    }

    fn row(&mut self, word: &str, weight: f32) -> Option<usize> {
        if self.rows.len() >= MAX_ROWS {
            return None;
        }
        let place = self.rows.len();
        self.rows.push(Row {
            word: word.to_owned(),
            weight,
            meanings: meanings(word, self.index, self.concepts),
        });
        self.places.insert(word.to_owned(), place);
        Some(place)
    }

    /// Leaves each word of tools to the word of the query that it is nearest to: it would count twice.
    fn leave_each_word_to_one(&mut self) {
        let mut nearest: HashMap<Term, (f32, usize)> = HashMap::new();
        for (place, row) in self.rows.iter().enumerate() {
            for meaning in &row.meanings {
                let known = nearest.entry(meaning.term).or_insert((0.0, place));
                if meaning.weight > known.0 {
                    *known = (meaning.weight, place);
                }
            }
        }
        for (place, row) in self.rows.iter_mut().enumerate() {
            row.meanings.retain(|meaning| {
                let nearest = nearest.get(&meaning.term);
                meaning.kin == Kin::Joined || nearest.is_none_or(|(_, nearest)| *nearest == place)
            });
        }
    }

    /// Two words that follow each other may be one word elsewhere.
    fn join(&mut self, first: &str, first_place: usize, second: &str, second_place: usize) {
        let mut joined = format!("{first}{second}");
        stem(&mut joined);
        let term = self.index.find(&joined);
        let Some(term) = term.filter(|_| !self.concepts.is_generic(second)) else {
            return;
        };
        for (place, word) in [(first_place, first), (second_place, second)] {
            let Some(row) = self.rows.get_mut(place) else {
                continue;
            };
            let same = self.index.find(word);
            let mut found = Found {
                index: self.index,
                most: same.map_or(f32::MAX, |term| self.index.rarity_of(term)),
                meanings: std::mem::take(&mut row.meanings),
            };
            found.add(term, JOINED, Kin::Joined);
            row.meanings = found.meanings;
        }
    }
}

/// The words of tools that a word may mean.
fn meanings(word: &str, index: &ToolIndex, concepts: &Concepts) -> Vec<Meaning> {
    let same = index.find(word);
    let mut found = Found {
        index,
        most: same.map_or(f32::MAX, |term| index.rarity_of(term)),
        meanings: Vec::new(),
    };
    if let Some(term) = same {
        found.add(term, 1.0, Kin::Same);
    }
    for related in concepts.related(word) {
        if let Some(term) = index.find(related) {
            found.add(term, RELATED, Kin::Related);
        }
    }
    if word.is_ascii() && word.len() >= MIN_BEGINNING {
        for term in index.beginning_with(word) {
            let longer = index.vocabulary.text(term);
            let share = super::index::count(word.len()) / super::index::count(longer.len());
            found.add(term, BEGINS * share.sqrt(), Kin::Begins);
        }
    }
    if same.is_none() && !concepts.knows(word) && is_correctable(word) {
        found.correct(word, concepts);
    }
    found.meanings
}

/// The meanings of one word.
struct Found<'a> {
    index: &'a ToolIndex,
    /// How rare the word itself is.
    most: f32,
    meanings: Vec<Meaning>,
}

impl Found<'_> {
    /// Takes the word for a misspelling of others.
    fn correct(&mut self, word: &str, concepts: &Concepts) {
        let mut near = self.index.corrections(word);
        near.extend(corrections(word, concepts.known()));
        let fewest = near.iter().map(|(_, mistakes)| *mistakes).min();
        near.retain(|(_, mistakes)| Some(*mistakes) == fewest);
        near.sort();
        near.dedup();
        for (meant, mistakes) in near {
            let weight = CORRECTED / super::index::count(mistakes);
            if let Some(term) = self.index.find(&meant) {
                self.add(term, weight, Kin::Corrected);
            }
            for related in concepts.related(&meant) {
                if let Some(term) = self.index.find(related) {
                    self.add(term, weight * RELATED, Kin::Corrected);
                }
            }
        }
    }

    /// Adds a meaning, unless it is there with at least this weight.
    fn add(&mut self, term: Term, weight: f32, kin: Kin) {
        let meaning = Meaning {
            term,
            weight,
            worth: weight * self.index.rarity_of(term).min(self.most),
            kin,
        };
        let known = self.meanings.iter_mut().find(|known| known.term == term);
        match known {
            Some(known) if known.weight >= weight => {}
            Some(known) => *known = meaning,
            None => self.meanings.push(meaning),
        }
    }
}

/// Names of tools in a query: all of it, or what is written as a name within it.
fn names(text: &str, index: &ToolIndex) -> Vec<Box<[Term]>> {
    let mut found: Vec<Box<[Term]>> = Vec::new();
    let mut try_name = |text: &str| {
        let terms = all_words(text);
        let terms = terms.iter().map(|word| index.vocabulary.find(word));
        let terms: Option<Box<[Term]>> = terms.collect();
        if let Some(terms) = terms.filter(|terms| !terms.is_empty())
            && index.by_name.contains_key(&terms)
            && !found.contains(&terms)
        {
            found.push(terms);
        }
    };
    try_name(text);
    let tokens = text.split_whitespace().map(|token| {
        token.trim_matches(|character: char| !(character.is_alphanumeric() || character == '_'))
    });
    let is_name = |token: &&str| is_identifier(token) && mention_in(token).is_none();
    for token in tokens.filter(is_name) {
        try_name(token);
        if let Some((_, last)) = token.rsplit_once("__") {
            try_name(last);
        }
        for separator in ['.', '/', ':'] {
            if let Some((server, last)) = token.rsplit_once(separator)
                && index.has_server(server)
            {
                try_name(last);
            }
        }
    }
    found
}

/// Whether something is written as the name of a tool, and not as a word.
fn is_identifier(token: &str) -> bool {
    let token = token.trim_matches(|character: char| !character.is_alphanumeric());
    let has_joint = token.contains(['_', '-', '.', '/', ':']);
    let mut letters = token.chars();
    let mut was_small = false;
    let has_hump = letters.any(|letter| {
        let is_hump = was_small && letter.is_uppercase();
        was_small = letter.is_lowercase();
        is_hump
    });
    has_joint || has_hump
}
