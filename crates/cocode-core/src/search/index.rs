//! The index: which words stand where in which tools.
//!
//! How much a word counts for a tool is worked out when the tool becomes known, and does not depend
//! on other tools; only how rare a word is does. So servers come and go for little, and an index
//! that was changed finds the same as one that was made anew.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::schema_words::SchemaTexts;
use super::vocabulary::{Term, Vocabulary};
use super::words::words;

/// Words of one field that are read.
const MAX_FIELD_WORDS: usize = 1_000;
/// Bytes of one text that are read.
const MAX_TEXT_BYTES: usize = 16 * 1024;
/// Bytes of one name that are read.
const MAX_NAME_BYTES: usize = 256;
/// Bytes of a schema that is read at all.
const MAX_SCHEMA_BYTES: usize = 1024 * 1024;
/// Words of a name that count.
const MAX_NAME_WORDS: usize = 24;
/// Bytes of what is said of a server that are read.
const MAX_ABOUT_BYTES: usize = 600;
/// From how much on more of a word hardly counts (what BM25 calls k1).
const SATURATION: f32 = 2.0;
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

/// Where words stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Server,
    Description,
    Parameters,
    ParameterTexts,
    About,
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
    /// How rare each word is.
    pub(super) rarity: Vec<f32>,
    /// Tools by number. Numbers of tools that are gone are used again.
    tools: Vec<Option<Indexed>>,
    free: Vec<u32>,
    servers: BTreeMap<Arc<str>, Vec<u32>>,
    /// Tools by the words of their names.
    pub(super) by_name: HashMap<Box<[Term]>, Vec<u32>>,
}

/// A word of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) tool: u32,
    /// How much it counts, below one.
    pub(super) strength: f32,
    /// Where it stands.
    fields: u8,
}

/// A tool that is known.
#[derive(Clone, Debug)]
pub(super) struct Indexed {
    pub(super) server: Arc<str>,
    pub(super) tool: Arc<str>,
    /// The words of its name, in order.
    pub(super) name: Box<[Term]>,
}

impl Field {
    pub(super) const ALL: [Self; 6] = [
        Self::Name,
        Self::Server,
        Self::Description,
        Self::Parameters,
        Self::ParameterTexts,
        Self::About,
    ];

    fn bit(self) -> u8 {
        1 << (self as u8)
    }

    /// How much a word counts here.
    fn weight(self) -> f32 {
        match self {
            Self::Name => 2.0,
            Self::Server | Self::Description => 1.0,
            Self::Parameters | Self::ParameterTexts => 0.5,
            Self::About => 0.25,
        }
    }

    /// How many words there usually are.
    fn usual_words(self) -> f32 {
        match self {
            Self::Name => 2.7,
            Self::Server => 1.8,
            Self::Description => 35.0,
            Self::Parameters => 4.4,
            Self::ParameterTexts => 17.0,
            Self::About => 30.0,
        }
    }

    /// How much more or less words than usual matter.
    fn length_matters(self) -> f32 {
        match self {
            Self::Name => 0.5,
            Self::Server => 0.3,
            Self::Description | Self::Parameters | Self::ParameterTexts | Self::About => 0.7,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Server => "server",
            Self::Description => "description",
            Self::Parameters => "parameters",
            Self::ParameterTexts => "texts of parameters",
            Self::About => "what is said of the server",
        }
    }
}

impl Posting {
    pub(super) fn fields(&self) -> impl Iterator<Item = Field> {
        let fields = self.fields;
        let all = Field::ALL.into_iter();
        all.filter(move |field| fields & field.bit() != 0)
    }
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
        self.settle();
    }

    /// Forgets a server, and says whether it was known.
    pub fn remove_server(&mut self, server: &str) -> bool {
        let was_known = self.take_away(server);
        self.settle();
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
        self.rarity.get(place(term)).copied().unwrap_or_default()
    }

    /// Whether a word stands somewhere.
    fn is_used(&self, term: Term) -> bool {
        !self.postings_of(term).is_empty()
    }

    /// Longer words that begin with this one.
    pub(super) fn beginning_with(&self, word: &str) -> impl Iterator<Item = Term> {
        self.vocabulary
            .beginning_with(word, |term| self.is_used(term))
    }

    /// Words that this one may be a misspelling of, with the number of mistakes.
    pub(super) fn corrections(&self, word: &str) -> Vec<(String, usize)> {
        self.vocabulary.corrections(word, |term| self.is_used(term))
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
        for (term, tally) in &reader.tallies {
            let posting = tally.posting(tool, &reader.lengths);
            if let Some(postings) = self.postings.get_mut(place(*term)) {
                postings.push(posting);
            }
            if posting.fields & Field::Name.bit() != 0
                && let Some(named) = self.named.get_mut(place(*term))
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

    /// Makes ready for searches.
    fn settle(&mut self) {
        self.forget_words();
        self.vocabulary.settle();
        let n_tools = count(self.len());
        self.rarity.clear();
        self.rarity.extend(self.postings.iter().map(|postings| {
            let with = count(postings.len());
            ((n_tools - with + 0.5) / (with + 0.5)).ln_1p()
        }));
    }

    /// Forgets words that stand nowhere any more, if they are most of them.
    fn forget_words(&mut self) {
        let n_used = self.postings.iter().filter(|all| !all.is_empty()).count();
        if self.vocabulary.len() < MIN_WORDS_TO_COMPACT || n_used * 2 > self.vocabulary.len() {
            return;
        }
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

/// How often a word stands in each field.
#[derive(Clone, Copy, Debug, Default)]
struct Tally([u16; Field::ALL.len()]);

/// How many words each field has.
type Lengths = [u16; Field::ALL.len()];

impl Tally {
    fn posting(&self, tool: u32, lengths: &Lengths) -> Posting {
        let mut amount = 0.0;
        let mut fields = 0;
        for ((field, times), length) in Field::ALL.into_iter().zip(self.0).zip(lengths) {
            if times > 0 {
                let length = f32::from(*length) / field.usual_words();
                let matters = field.length_matters();
                let per_length = 1.0 - matters + matters * length;
                amount += field.weight() * f32::from(times) / per_length;
                fields |= field.bit();
            }
        }
        Posting {
            tool,
            strength: amount / (SATURATION + amount),
            fields,
        }
    }
}

/// Reads the tools of a server, one after the other.
#[derive(Debug, Default)]
struct Reader {
    /// The words of the tool, with those of its server.
    tallies: BTreeMap<Term, Tally>,
    lengths: Lengths,
    /// What every tool of the server begins with.
    of_server: BTreeMap<Term, Tally>,
    lengths_of_server: Lengths,
}

impl Reader {
    fn server(&mut self, vocabulary: &mut Vocabulary, name: &str, about: Option<&str>) {
        self.identifier(vocabulary, Field::Server, name);
        if let Some(about) = about {
            let (about, _) = about.split_at(about.floor_char_boundary(MAX_ABOUT_BYTES));
            self.text(vocabulary, Field::About, about);
        }
        self.of_server = self.tallies.clone();
        self.lengths_of_server = self.lengths;
    }

    /// Reads a tool, and says what words its name has.
    fn tool(&mut self, vocabulary: &mut Vocabulary, tool: &ToolText<'_>) -> Box<[Term]> {
        self.tallies.clone_from(&self.of_server);
        self.lengths = self.lengths_of_server;
        let name = self.identifier(vocabulary, Field::Name, tool.name);
        for text in [tool.title, tool.description].into_iter().flatten() {
            self.text(vocabulary, Field::Description, text);
        }
        let schema = tool.input_schema;
        let schema = schema.filter(|schema| schema.len() <= MAX_SCHEMA_BYTES);
        let schema = schema.map(serde_json::from_str);
        if let Some(Ok(schema)) = schema {
            let SchemaTexts { names, texts } = SchemaTexts::of(&schema);
            for name in names {
                self.identifier(vocabulary, Field::Parameters, name);
            }
            for text in texts {
                self.text(vocabulary, Field::ParameterTexts, text);
            }
        }
        name.into()
    }

    fn text(&mut self, vocabulary: &mut Vocabulary, field: Field, text: &str) {
        let (text, _) = text.split_at(text.floor_char_boundary(MAX_TEXT_BYTES));
        words(text, |word| {
            if self.has_room(field) {
                let term = vocabulary.number(word);
                self.tally(term, field, true);
            }
        });
    }

    /// Whether more words of a field count.
    fn has_room(&self, field: Field) -> bool {
        let length = self.lengths.get(field as usize).copied();
        length.is_some_and(|length| usize::from(length) < MAX_FIELD_WORDS)
    }

    /// Reads a name. Two words of it, and all of them, are also known as one: some write `web_page`,
    /// some `webpage`, and some know the name of a parameter by heart.
    fn identifier(&mut self, vocabulary: &mut Vocabulary, field: Field, text: &str) -> Vec<Term> {
        let (text, _) = text.split_at(text.floor_char_boundary(MAX_NAME_BYTES));
        let mut terms = Vec::new();
        let mut before = String::new();
        let mut whole = String::new();
        words(text, |word| {
            if terms.len() >= MAX_NAME_WORDS || !self.has_room(field) {
                return;
            }
            let term = vocabulary.number(word);
            terms.push(term);
            self.tally(term, field, true);
            if !before.is_empty() {
                before.push_str(word);
                super::stem::stem(&mut before);
                self.tally(vocabulary.number(&before), field, false);
            }
            before.clear();
            before.push_str(word);
            whole.push_str(word);
        });
        if terms.len() > 2 {
            self.tally(vocabulary.number(&whole), field, false);
        }
        terms
    }

    fn tally(&mut self, term: Term, field: Field, counts: bool) {
        let place = field as usize;
        if let Some(length) = self.lengths.get_mut(place) {
            *length += u16::from(counts);
        }
        let tally = self.tallies.entry(term).or_default();
        if let Some(times) = tally.0.get_mut(place) {
            *times = times.saturating_add(1);
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
