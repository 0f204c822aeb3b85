//! The index: which words stand where in which tools.
//!
//! How much a word counts for a tool is worked out when the tool becomes known, and does not depend
//! on other tools; only how rare a word is does. So servers come and go for little, and an index
//! that was changed finds the same as one that was made anew.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use super::reading::{Field, Posting, Reader};
use super::vocabulary::{Sorted, Term, Vocabulary};

/// An index is made anew when it has this many words, and most of them stand nowhere any more.
const MIN_WORDS_TO_COMPACT: usize = 20_000;

/// What is known of a tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolText<'a> {
    /// Its server's name for it.
    pub name: &'a str,
    /// A name for people.
    pub title: Option<&'a str>,
    /// What it does.
    pub description: Option<&'a str>,
    /// The JSON Schema of its arguments, as text. One that cannot be read is as good as none.
    pub input_schema: Option<&'a str>,
}

/// Tools, ready to be searched.
///
/// ```
/// use cocode_core::{ToolIndex, ToolText};
///
/// let mut index = ToolIndex::new();
/// index.set_server("files", None, [
///     ToolText { name: "read_file", description: Some("Read a file."), ..ToolText::default() },
///     ToolText { name: "list_directory", ..ToolText::default() },
/// ]);
/// let hits = index.search("show me what is in a folder", 1);
/// assert_eq!(&*hits[0].tool, "list_directory");
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolIndex {
    pub(super) vocabulary: Vocabulary,
    /// Where each word stands.
    pub(super) postings: Vec<Vec<Posting>>,
    /// The tools that have each word in their names.
    pub(super) named: Vec<Vec<u32>>,
    /// What searches need, made ready for the first one after a change.
    settled: OnceLock<Settled>,
    /// The order of words before the last change.
    sorted_before: Sorted,
    /// Tools by number. Numbers of tools that are gone are used again.
    tools: Vec<Option<Indexed>>,
    free: Vec<u32>,
    servers: BTreeMap<Arc<str>, Vec<u32>>,
    /// Tools by the words of their names.
    pub(super) by_name: HashMap<Box<[Term]>, Vec<u32>>,
}

/// What is about all words and tools together.
#[derive(Clone, Debug)]
struct Settled {
    sorted: Sorted,
    /// How rare each word is.
    rarity: Vec<f32>,
}

/// A tool that is known.
#[derive(Clone, Debug)]
pub(super) struct Indexed {
    pub(super) server: Arc<str>,
    pub(super) tool: Arc<str>,
    /// The words of its name, in order.
    pub(super) name: Box<[Term]>,
}

impl ToolIndex {
    /// An index without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Knows exactly these tools of a server from now on, whatever it knew before. `about` is what
    /// is said of the server as a whole. Of tools with the same name, the last counts.
    pub fn set_server<'a>(
        &mut self,
        server: &str,
        about: Option<&str>,
        tools: impl IntoIterator<Item = ToolText<'a>>,
    ) {
        self.take_away(server);
        self.unsettle();
        let server: Arc<str> = server.into();
        let mut reader = Reader::default();
        reader.server(&mut self.vocabulary, &server, about);
        let tools: BTreeMap<&str, ToolText<'a>> =
            tools.into_iter().map(|tool| (tool.name, tool)).collect();
        let mut numbers = Vec::with_capacity(tools.len());
        for tool in tools.into_values() {
            let name = reader.tool(&mut self.vocabulary, &tool);
            let number = self.add(Indexed {
                server: Arc::clone(&server),
                tool: tool.name.into(),
                name,
            });
            self.post(number, &reader);
            numbers.push(number);
        }
        self.servers.insert(server, numbers);
    }

    /// Forgets a server, and says whether it was known.
    pub fn remove_server(&mut self, server: &str) -> bool {
        let was_known = self.take_away(server);
        self.unsettle();
        was_known
    }

    /// The servers that are known, by name.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(|name| &**name)
    }

    /// How many tools are known.
    pub fn len(&self) -> usize {
        self.tools.len() - self.free.len()
    }

    /// Whether no tool is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many numbers of tools there are, those that are free included.
    pub(super) fn n_numbers(&self) -> usize {
        self.tools.len()
    }

    pub(super) fn tool(&self, number: u32) -> Option<&Indexed> {
        self.tools.get(place(number))?.as_ref()
    }

    pub(super) fn postings_of(&self, term: Term) -> &[Posting] {
        self.postings.get(place(term)).map_or(&[], Vec::as_slice)
    }

    /// The tools that have a word in their names.
    pub(super) fn named_by(&self, term: Term) -> &[u32] {
        self.named.get(place(term)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn rarity_of(&self, term: Term) -> f32 {
        let rarity = &self.settled().rarity;
        rarity.get(place(term)).copied().unwrap_or_default()
    }

    /// Whether a word stands somewhere.
    fn is_used(&self, term: Term) -> bool {
        !self.postings_of(term).is_empty()
    }

    /// Longer words that begin with this one.
    pub(super) fn beginning_with(&self, word: &str) -> impl Iterator<Item = Term> {
        let sorted = &self.settled().sorted;
        self.vocabulary
            .beginning_with(sorted, word, |term| self.is_used(term))
    }

    /// Words that this one may be a misspelling of, with the number of mistakes.
    pub(super) fn corrections(&self, word: &str) -> Vec<(String, usize)> {
        let sorted = &self.settled().sorted;
        self.vocabulary
            .corrections(sorted, word, |term| self.is_used(term))
    }

    /// Whether there is a server of this name.
    pub(super) fn has_server(&self, name: &str) -> bool {
        self.servers.contains_key(name)
    }

    /// The number of a word that stands somewhere.
    pub(super) fn find(&self, word: &str) -> Option<Term> {
        let term = self.vocabulary.find(word)?;
        self.is_used(term).then_some(term)
    }

    fn add(&mut self, indexed: Indexed) -> u32 {
        let name = indexed.name.clone();
        let number = if let Some(number) = self.free.pop() {
            number
        } else {
            self.tools.push(None);
            u32::try_from(self.tools.len() - 1).unwrap_or(u32::MAX)
        };
        if let Some(place) = self.tools.get_mut(place(number)) {
            *place = Some(indexed);
        }
        self.by_name.entry(name).or_default().push(number);
        number
    }

    fn post(&mut self, tool: u32, reader: &Reader) {
        self.postings.resize_with(self.vocabulary.len(), Vec::new);
        self.named.resize_with(self.vocabulary.len(), Vec::new);
        for (term, posting) in reader.postings(tool) {
            if let Some(postings) = self.postings.get_mut(place(term)) {
                postings.push(posting);
            }
            if posting.is_in(Field::Name)
                && let Some(named) = self.named.get_mut(place(term))
            {
                named.push(tool);
            }
        }
    }

    fn take_away(&mut self, server: &str) -> bool {
        let Some(numbers) = self.servers.remove(server) else {
            return false;
        };
        if numbers.is_empty() {
            return true;
        }
        for number in numbers {
            let tool = self.tools.get_mut(place(number)).and_then(Option::take);
            if let Some(tool) = tool
                && let Some(alike) = self.by_name.get_mut(&tool.name)
            {
                alike.retain(|other| *other != number);
                if alike.is_empty() {
                    self.by_name.remove(&tool.name);
                }
            }
            self.free.push(number);
        }
        let tools = &self.tools;
        let is_there = |number: u32| tools.get(place(number)).is_some_and(Option::is_some);
        for postings in &mut self.postings {
            postings.retain(|posting| is_there(posting.tool));
        }
        for named in &mut self.named {
            named.retain(|number| is_there(*number));
        }
        true
    }

    /// Begins a change.
    fn unsettle(&mut self) {
        if let Some(settled) = self.settled.take() {
            self.sorted_before = settled.sorted;
        }
        self.forget_words();
    }

    /// What searches need, made ready if it is not.
    fn settled(&self) -> &Settled {
        self.settled.get_or_init(|| {
            let n_tools = count(self.len());
            let rarity = self.postings.iter().map(|postings| {
                let with = count(postings.len());
                ((n_tools - with + 0.5) / (with + 0.5)).ln_1p()
            });
            Settled {
                sorted: self.vocabulary.sorted(&self.sorted_before),
                rarity: rarity.collect(),
            }
        })
    }

    /// Forgets words that stand nowhere any more, if they are most of them.
    fn forget_words(&mut self) {
        let n_used = self.postings.iter().filter(|all| !all.is_empty()).count();
        if self.vocabulary.len() < MIN_WORDS_TO_COMPACT || n_used * 2 > self.vocabulary.len() {
            return;
        }
        self.sorted_before = Sorted::default();
        let old = std::mem::take(&mut self.vocabulary);
        let mut numbers: HashMap<Term, Term> = HashMap::new();
        let mut all = std::mem::take(&mut self.postings);
        let mut named = std::mem::take(&mut self.named);
        for (number, (postings, named)) in (0..).zip(all.iter_mut().zip(&mut named)) {
            if !postings.is_empty() {
                let new = self.vocabulary.number(old.text(number));
                numbers.insert(number, new);
                self.postings.push(std::mem::take(postings));
                self.named.push(std::mem::take(named));
            }
        }
        let renumbered = |name: &[Term]| -> Box<[Term]> {
            let all = name.iter().filter_map(|term| numbers.get(term).copied());
            all.collect()
        };
        for tool in self.tools.iter_mut().flatten() {
            tool.name = renumbered(&tool.name);
        }
        let by_name = std::mem::take(&mut self.by_name);
        #[expect(clippy::iter_over_hash_type, reason = "one map becomes another")]
        for (name, tools) in by_name {
            self.by_name
                .entry(renumbered(&name))
                .or_default()
                .extend(tools);
        }
    }
}

pub(super) fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2^24 tools")]
pub(super) fn count(many: usize) -> f32 {
    many as f32
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
