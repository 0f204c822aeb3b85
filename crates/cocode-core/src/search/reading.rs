//! Reads tools: which words stand where in them, and how much each of them counts there.

use std::collections::BTreeMap;

use super::index::ToolText;
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

/// A word of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) tool: u32,
    /// How much it counts, below one.
    pub(super) strength: f32,
    /// Where it stands.
    fields: u8,
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
    pub(super) fn is_in(&self, field: Field) -> bool {
        self.fields & field.bit() != 0
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = Field> {
        let fields = self.fields;
        let all = Field::ALL.into_iter();
        all.filter(move |field| fields & field.bit() != 0)
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
pub(super) struct Reader {
    /// The words of the tool, with those of its server.
    tallies: BTreeMap<Term, Tally>,
    lengths: Lengths,
    /// What every tool of the server begins with.
    of_server: BTreeMap<Term, Tally>,
    lengths_of_server: Lengths,
}

impl Reader {
    pub(super) fn server(&mut self, vocabulary: &mut Vocabulary, name: &str, about: Option<&str>) {
        self.identifier(vocabulary, Field::Server, name);
        if let Some(about) = about {
            let (about, _) = about.split_at(about.floor_char_boundary(MAX_ABOUT_BYTES));
            self.text(vocabulary, Field::About, about);
        }
        self.of_server = self.tallies.clone();
        self.lengths_of_server = self.lengths;
    }

    /// Reads a tool, and says what words its name has.
    pub(super) fn tool(&mut self, vocabulary: &mut Vocabulary, tool: &ToolText<'_>) -> Box<[Term]> {
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

    /// What the words of the tool count.
    pub(super) fn postings(&self, tool: u32) -> impl Iterator<Item = (Term, Posting)> {
        let tallies = self.tallies.iter();
        tallies.map(move |(term, tally)| (*term, tally.posting(tool, &self.lengths)))
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
