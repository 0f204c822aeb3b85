//! Says what a score is made of.

use super::index::ToolIndex;
use super::query::{Kin, Query, Row};
use super::rank::{Choice, Hit};

/// A tool that was found, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The tool.
    pub hit: Hit,
    /// What its score is made of, the largest part first: they add up to it.
    pub parts: Vec<ScorePart>,
}

/// A part of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScorePart {
    /// What of the query, or which rule.
    pub what: String,
    /// What was found where, in words.
    pub found: String,
    /// How much it brings, or takes away.
    pub score: f64,
}

impl ToolIndex {
    /// The same as [`ToolIndex::search`], with what each score is made of.
    pub fn explain(&self, query: &str, limit: usize) -> Vec<Explained> {
        self.explain_among(query, limit, |_, _| true)
    }

    /// The same as [`ToolIndex::search_among`], with what each score is made of.
    pub fn explain_among(
        &self,
        query: &str,
        limit: usize,
        admits: impl Fn(&str, &str) -> bool,
    ) -> Vec<Explained> {
        let query = Query::read(query, self);
        let choices = self.choose(&query, limit, admits);
        let explained = choices.iter().map(|choice| Explained {
            hit: choice.hit(),
            parts: self.parts(&query, choice),
        });
        explained.collect()
    }

    fn parts(&self, query: &Query, choice: &Choice<'_>) -> Vec<ScorePart> {
        let mut parts: Vec<ScorePart> = query
            .rows
            .iter()
            .take(query.n_whole)
            .filter_map(|row| self.word(row, choice.number))
            .collect();
        let mut rule = |what: &str, found: String, score: f32| {
            if score != 0.0 {
                parts.push(ScorePart {
                    what: what.to_owned(),
                    found,
                    score: f64::from(score),
                });
            }
        };
        rule("name", "made of what was asked for".to_owned(), choice.name);
        let server = "has other tools that fit".to_owned();
        rule("server", server, choice.server);
        rule("mention", "the tool was named".to_owned(), choice.mention);
        let part = choice.part_place.and_then(|place| query.parts.get(place));
        let part = part.map_or("", |part| part.text.as_str());
        rule("one of several things", format!("`{part}`"), choice.part);
        let others = "tools of the same name or server are above it".to_owned();
        rule("diversity", others, choice.others);
        parts.sort_by(|one, other| other.score.total_cmp(&one.score));
        parts
    }

    /// What a word of the query brings.
    fn word(&self, row: &Row, tool: u32) -> Option<ScorePart> {
        let mut best: Option<(f32, String)> = None;
        for meaning in &row.meanings {
            let postings = self.postings_of(meaning.term).iter();
            let Some(posting) = postings.clone().find(|posting| posting.tool == tool) else {
                continue;
            };
            let score = meaning.worth * row.weight * posting.strength;
            if best.as_ref().is_none_or(|(most, _)| score > *most) {
                let fields: Vec<_> = posting.fields().map(super::reading::Field::words).collect();
                let kin = match meaning.kin {
                    Kin::Same => "",
                    Kin::Joined => "written as one word, ",
                    Kin::Related => "means nearly the same, ",
                    Kin::Begins => "begins like it, ",
                    Kin::Corrected => "taken for a misspelling, ",
                };
                let text = self.vocabulary.text(meaning.term);
                let found = format!("`{text}` ({kin}in {})", fields.join(", "));
                best = Some((score, found));
            }
        }
        let (score, found) = best?;
        Some(ScorePart {
            what: row.word.clone(),
            found,
            score: f64::from(score),
        })
    }
}
