//! Plain BM25 over everything that is said of a tool: the ranking that ours is compared with.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Tool;

const K1: f64 = 1.5;
const B: f64 = 0.75;

/// Tools, ready to be ranked.
pub(crate) struct Plain<'a> {
    names: Vec<&'a str>,
    words: Vec<HashMap<String, f64>>,
    lengths: Vec<f64>,
    n_with: HashMap<String, f64>,
    usual: f64,
}

impl<'a> Plain<'a> {
    pub(crate) fn of(tools: &'a [Tool]) -> Self {
        let mut plain = Self {
            names: tools.iter().map(|tool| tool.name.as_str()).collect(),
            words: Vec::new(),
            lengths: Vec::new(),
            n_with: HashMap::new(),
            usual: 0.0,
        };
        for tool in tools {
            let mut count: HashMap<String, f64> = HashMap::new();
            let mut length = 0.0;
            for word in words(&text_of(tool)) {
                *count.entry(word).or_default() += 1.0;
                length += 1.0;
            }
            let different: HashSet<&String> = count.keys().collect();
            #[expect(clippy::iter_over_hash_type, reason = "counts have no order")]
            for word in different {
                *plain.n_with.entry(word.clone()).or_default() += 1.0;
            }
            plain.words.push(count);
            plain.lengths.push(length);
        }
        #[expect(clippy::cast_precision_loss, reason = "some thousand tools")]
        let n_tools = tools.len().max(1) as f64;
        plain.usual = plain.lengths.iter().sum::<f64>() / n_tools;
        plain
    }

    /// The names of the tools that fit best.
    pub(crate) fn search(&self, query: &str, limit: usize) -> Vec<&'a str> {
        #[expect(clippy::cast_precision_loss, reason = "some thousand tools")]
        let n_tools = self.names.len() as f64;
        let mut scores = vec![0.0; self.names.len()];
        for word in words(query) {
            let Some(with) = self.n_with.get(&word) else {
                continue;
            };
            let rarity = ((n_tools - with + 0.5) / (with + 0.5)).ln_1p();
            for ((score, count), length) in scores.iter_mut().zip(&self.words).zip(&self.lengths) {
                if let Some(times) = count.get(&word) {
                    let usual = 1.0 - B + B * length / self.usual;
                    *score += rarity * times * (K1 + 1.0) / (times + K1 * usual);
                }
            }
        }
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        order.truncate(limit);
        order.into_iter().map(|place| self.names[place]).collect()
    }
}

fn text_of(tool: &Tool) -> String {
    let mut text = format!("{} {} ", tool.server, tool.name);
    text.push_str(tool.description.as_deref().unwrap_or_default());
    let schema = tool.input_schema.as_deref();
    let schema: Value = schema
        .and_then(|schema| serde_json::from_str(schema.get()).ok())
        .unwrap_or_default();
    for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
        let said = parameter["description"].as_str().unwrap_or_default();
        for word in [" ", name, " ", said] {
            text.push_str(word);
        }
    }
    text
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase)
}
