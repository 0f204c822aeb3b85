//! A ranking that only counts words, to compare ours with: BM25 over all texts of a tool at once.

use std::collections::{BTreeMap, BTreeSet};

use cocode_client::Tool;
use serde_json::Value;

/// From how much on more of a word hardly counts.
const K1: f64 = 1.5;
/// How much the length of a text matters.
const B: f64 = 0.75;

/// Tools, and how often they have each word.
#[derive(Debug, Default)]
pub(super) struct Bm25 {
    tools: Vec<(String, BTreeMap<String, f64>)>,
}

impl Bm25 {
    pub(super) fn add(&mut self, name: String, server: &str, tool: &Tool) {
        let schema: Value = tool.input_schema.decode().unwrap();
        let mut texts = vec![tool.name.clone(), server.to_owned()];
        texts.extend(tool.description.clone());
        parameters(&schema, &mut texts);
        let mut words = BTreeMap::new();
        for word in tokens(&texts.join("\n")) {
            *words.entry(word).or_default() += 1.0;
        }
        self.tools.push((name, words));
    }

    /// The best ones, those that were added first where several are as good.
    pub(super) fn search(&self, query: &str, limit: usize) -> Vec<String> {
        let n_tools = number(self.tools.len());
        let length = |words: &BTreeMap<String, f64>| words.values().sum::<f64>();
        let all: f64 = self.tools.iter().map(|(_, words)| length(words)).sum();
        let wanted: BTreeSet<String> = tokens(query).collect();
        let rarity = wanted.into_iter().map(|word| {
            let with = self
                .tools
                .iter()
                .filter(|(_, words)| words.contains_key(&word));
            let with = number(with.count());
            let rarity = ((n_tools - with + 0.5) / (with + 0.5)).ln_1p();
            (word, rarity)
        });
        let rarity: Vec<(String, f64)> = rarity.collect();
        let score = |words: &BTreeMap<String, f64>| -> f64 {
            let per_length = K1 * (1.0 - B + B * length(words) / (all / n_tools));
            let parts = rarity.iter().map(|(word, rarity)| {
                let times = words.get(word).copied().unwrap_or_default();
                rarity * times * (K1 + 1.0) / (times + per_length)
            });
            parts.sum()
        };
        let scored = self.tools.iter().map(|(name, words)| (score(words), name));
        let mut scored: Vec<(f64, &String)> = scored.filter(|(score, _)| *score > 0.0).collect();
        scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let best = scored.into_iter().take(limit);
        best.map(|(_, name)| name.clone()).collect()
    }
}

/// Names and descriptions of parameters, at every depth.
fn parameters(schema: &Value, texts: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        texts.extend(properties.keys().cloned());
                        properties.values().for_each(|one| parameters(one, texts));
                    }
                    ("description", Value::String(text)) => texts.push(text.clone()),
                    _ => parameters(value, texts),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| parameters(item, texts)),
        _ => {}
    }
}

fn tokens(text: &str) -> impl Iterator<Item = String> {
    let text = text.to_lowercase();
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(Into::into)
        .collect();
    words.into_iter()
}

#[expect(clippy::cast_precision_loss, reason = "there are few tools")]
fn number(many: usize) -> f64 {
    many as f64
}
