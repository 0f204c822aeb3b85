//! Which tools fit a query best.
//!
//! Every word of a query adds what its best meaning counts for a tool: how rare the word is, and how
//! much it says there (BM25F). Tools whose names are made of what is asked for get more. Where a
//! query asks for several things, a tool also gets what it is worth for one of them, less each time
//! that one was served. So the list has something for each of them, and neither the same tool of
//! five servers nor all tools of one server crowd out the rest.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use super::index::{Indexed, ToolIndex, count, place};
use super::query::Query;
use super::vocabulary::Term;

/// What a name adds that is made of nothing but what was asked for.
const NAMED: f32 = 0.5;
/// What the best tools of its server add to a tool, for queries of so many words: who asks for much
/// mostly needs several tools that belong together.
const SERVER: f32 = 0.5;
const SERVER_FROM_WORDS: usize = 8;
/// How many tools of a server tell what it is worth.
const TOOLS_OF_SERVER: usize = 3;
/// What is left for one of several things each time that it was served.
const SERVED: f32 = 0.5;
/// What is left of a tool when another of the same name was taken.
const SAME_NAME: f32 = 0.5;
/// How much each tool that was taken makes the others of its server count less.
const SAME_SERVER: f32 = 0.02;
/// Tools that are looked at closely, for each one that is wanted.
const CANDIDATES_PER_HIT: usize = 8;
/// The fewest and the most tools that are looked at closely.
const CANDIDATES: (usize, usize) = (80, 2_000);
/// Tools that are ever found at once.
pub(super) const MAX_HITS: usize = 1_000;

/// Steps in which scores are told apart, from one to the next.
const SCORE_STEPS: f64 = 10_000.0;

/// A tool that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Whose tool.
    pub server: Arc<str>,
    /// The server's name for it.
    pub tool: Arc<str>,
    /// How well it fits: above zero, never more than that of the hit before, and comparable within
    /// one search.
    pub score: f64,
}

/// A hit, with what its score is made of.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    pub(super) number: u32,
    pub(super) tool: &'a Indexed,
    /// For the words of the query.
    pub(super) words: f32,
    /// For its name.
    pub(super) name: f32,
    /// For the other tools of its server.
    pub(super) server: f32,
    /// Because it was named.
    pub(super) mention: f32,
    /// For one of several things, and which.
    pub(super) part: f32,
    pub(super) part_place: Option<usize>,
    /// What the choices before it take away: below zero, or nothing.
    pub(super) others: f32,
}

impl Choice<'_> {
    pub(super) fn score(&self) -> f32 {
        self.words + self.name + self.server + self.mention + self.part + self.others
    }

    pub(super) fn hit(&self) -> Hit {
        Hit {
            server: Arc::clone(&self.tool.server),
            tool: Arc::clone(&self.tool.tool),
            score: rounded(self.score()),
        }
    }
}

/// A score as it is shown: nobody needs more digits, and none is so small that it is nothing.
fn rounded(score: f32) -> f64 {
    let score = (f64::from(score) * SCORE_STEPS).round() / SCORE_STEPS;
    score.max(1.0 / SCORE_STEPS)
}

impl ToolIndex {
    /// The tools that fit a query best, the best first.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        self.search_among(query, limit, |_, _| true)
    }

    /// The same among the tools that are admitted, by server and name.
    pub fn search_among(
        &self,
        query: &str,
        limit: usize,
        admits: impl Fn(&str, &str) -> bool,
    ) -> Vec<Hit> {
        let query = Query::read(query, self);
        let choices = self.choose(&query, limit, admits);
        choices.iter().map(Choice::hit).collect()
    }

    pub(super) fn choose(
        &self,
        query: &Query,
        limit: usize,
        admits: impl Fn(&str, &str) -> bool,
    ) -> Vec<Choice<'_>> {
        let limit = limit.min(MAX_HITS);
        if limit == 0 {
            return Vec::new();
        }
        let (least, most) = CANDIDATES;
        let wanted = (limit * CANDIDATES_PER_HIT).clamp(least, most);
        let mut candidates = self.candidates(query, wanted, admits);
        let parts = Parts::of(self, query, &candidates);
        let mut left = vec![1.0; query.parts.len()];
        let mut choices: Vec<Choice<'_>> = Vec::new();
        let mut taken = Taken::default();
        while choices.len() < limit {
            let mut best: Option<(usize, f32)> = None;
            for (place, candidate) in candidates.iter().enumerate() {
                let Some(candidate) = candidate else { continue };
                let (part, _) = parts.best(place, &left);
                let score = (candidate.score() + part) * taken.leaves(candidate.tool);
                if best.is_none_or(|(_, most)| score > most) {
                    best = Some((place, score));
                }
            }
            let Some((place, score)) = best else { break };
            let Some(mut chosen) = candidates.get_mut(place).and_then(Option::take) else {
                break;
            };
            let (part, part_place) = parts.best(place, &left);
            chosen.part = part;
            chosen.part_place = part_place;
            chosen.others = score - chosen.score();
            if let Some(left) = part_place.and_then(|place| left.get_mut(place)) {
                *left *= SERVED;
            }
            taken.take(chosen.tool);
            choices.push(chosen);
        }
        choices
    }

    /// The tools that are worth a closer look, the best first.
    fn candidates(
        &self,
        query: &Query,
        wanted: usize,
        admits: impl Fn(&str, &str) -> bool,
    ) -> Vec<Option<Choice<'_>>> {
        let words = self.word_scores(query);
        let names = self.name_scores(query);
        let largest = words.iter().copied().fold(0.0, f32::max);
        let mentioned = query.names.iter().filter_map(|name| self.by_name.get(name));
        let mentioned: HashSet<u32> = mentioned.flatten().copied().collect();
        let mut all = Vec::with_capacity(words.len());
        for (number, words) in (0..).zip(words) {
            let Some(tool) = self.tool(number) else {
                continue;
            };
            let is_mentioned = mentioned.contains(&number);
            if words <= 0.0 && !is_mentioned {
                continue;
            }
            let share = names.get(place(number)).copied().unwrap_or_default();
            all.push(Choice {
                number,
                tool,
                words,
                name: words * NAMED * self.share_of_name(tool, share),
                // More than any other can have.
                mention: if is_mentioned {
                    largest * 2.0 + 1.0
                } else {
                    0.0
                },
                server: 0.0,
                part: 0.0,
                part_place: None,
                others: 0.0,
            });
        }
        if query.n_whole >= SERVER_FROM_WORDS {
            add_servers(&mut all);
        }
        let mut all: BinaryHeap<_> = all.into_iter().map(Ranked).collect();
        let mut candidates = Vec::with_capacity(wanted);
        while candidates.len() < wanted
            && let Some(Ranked(candidate)) = all.pop()
        {
            if admits(&candidate.tool.server, &candidate.tool.tool) {
                candidates.push(Some(candidate));
            }
        }
        candidates
    }

    /// What the words of a query count, by tool.
    fn word_scores(&self, query: &Query) -> Vec<f32> {
        let mut scores = vec![0.0_f32; self.n_numbers()];
        let mut best = vec![0.0_f32; self.n_numbers()];
        let mut touched: Vec<u32> = Vec::new();
        for row in query.rows.iter().take(query.n_whole) {
            for meaning in &row.meanings {
                let weight = meaning.worth * row.weight;
                for posting in self.postings_of(meaning.term) {
                    let Some(best) = best.get_mut(place(posting.tool)) else {
                        continue;
                    };
                    if *best == 0.0 {
                        touched.push(posting.tool);
                    }
                    *best = best.max(weight * posting.strength);
                }
            }
            for tool in touched.drain(..) {
                if let (Some(score), Some(best)) =
                    (scores.get_mut(place(tool)), best.get_mut(place(tool)))
                {
                    *score += std::mem::take(best);
                }
            }
        }
        scores
    }

    /// How much of their names was asked for, by tool.
    fn name_scores(&self, query: &Query) -> Vec<f32> {
        let rows = query.rows.iter().take(query.n_whole);
        let mut asked: HashMap<Term, f32> = HashMap::new();
        let mut terms = Vec::new();
        for meaning in rows.flat_map(|row| &row.meanings) {
            let known = asked.entry(meaning.term).or_insert_with(|| {
                terms.push(meaning.term);
                0.0
            });
            *known = known.max(meaning.weight);
        }
        let mut scores = vec![0.0; self.n_numbers()];
        for term in terms {
            let worth = asked.get(&term).copied().unwrap_or_default() * self.rarity_of(term);
            for tool in self.named_by(term) {
                if let Some(score) = scores.get_mut(place(*tool)) {
                    *score += worth;
                }
            }
        }
        scores
    }

    /// What part of a name is worth this much.
    fn share_of_name(&self, tool: &Indexed, worth: f32) -> f32 {
        if worth <= 0.0 {
            return 0.0;
        }
        let whole: f32 = distinct(&tool.name).map(|term| self.rarity_of(term)).sum();
        if whole > 0.0 {
            (worth / whole).min(1.0)
        } else {
            0.0
        }
    }
}

/// Adds what servers are worth: what their best tools have, on average.
fn add_servers(all: &mut [Choice<'_>]) {
    let mut best: HashMap<Arc<str>, [f32; TOOLS_OF_SERVER]> = HashMap::new();
    for choice in &*all {
        let best = best.entry(Arc::clone(&choice.tool.server)).or_default();
        let mut score = choice.score();
        for place in best {
            if score > *place {
                std::mem::swap(place, &mut score);
            }
        }
    }
    for choice in all {
        let best = best.get(&choice.tool.server);
        let sum: f32 = best.map_or(0.0, |best| best.iter().sum());
        choice.server = SERVER * sum / count(TOOLS_OF_SERVER);
    }
}

/// The words of a name, each once.
fn distinct(name: &[Term]) -> impl Iterator<Item = Term> {
    let is_first =
        |(place, term): &(usize, &Term)| !name.iter().take(*place).any(|one| one == *term);
    name.iter()
        .enumerate()
        .filter(is_first)
        .map(|(_, term)| *term)
}

/// What each candidate is worth for each part of a query.
struct Parts {
    n_parts: usize,
    worth: Vec<f32>,
}

impl Parts {
    fn of(index: &ToolIndex, query: &Query, candidates: &[Option<Choice<'_>>]) -> Self {
        let n_parts = query.parts.len();
        if n_parts == 0 {
            let worth = Vec::new();
            return Self { n_parts, worth };
        }
        let rows = row_scores(index, query, candidates);
        let n_rows = query.rows.len();
        // Which rows mean a word, and how much.
        let mut means: HashMap<Term, Vec<(usize, f32)>> = HashMap::new();
        for (place, row) in query.rows.iter().enumerate() {
            for meaning in &row.meanings {
                let rows = means.entry(meaning.term).or_default();
                rows.push((place, meaning.weight));
            }
        }
        let mut worth = Vec::with_capacity(candidates.len() * n_parts);
        for (place, candidate) in candidates.iter().enumerate() {
            let scores = rows.get(place * n_rows..).unwrap_or_default();
            for part in &query.parts {
                let words: f32 = part.rows.iter().filter_map(|row| scores.get(*row)).sum();
                let mut named = 0.0;
                let mut whole = 0.0;
                let name = candidate
                    .as_ref()
                    .map_or(&[][..], |candidate| &candidate.tool.name);
                for term in distinct(name) {
                    let rarity = index.rarity_of(term);
                    let rows = means.get(&term).map_or(&[][..], Vec::as_slice);
                    let rows = rows.iter().filter(|(row, _)| part.rows.contains(row));
                    let weight = rows.map(|(_, weight)| *weight).fold(0.0, f32::max);
                    named += rarity * weight;
                    whole += rarity;
                }
                let share = if whole > 0.0 { named / whole } else { 0.0 };
                worth.push(words * (1.0 + NAMED * share));
            }
        }
        Self { n_parts, worth }
    }

    /// What a candidate is worth for the part that it serves best, by what is left for each.
    fn best(&self, candidate: usize, left: &[f32]) -> (f32, Option<usize>) {
        let from = candidate * self.n_parts;
        let worth = self
            .worth
            .get(from..from + self.n_parts)
            .unwrap_or_default();
        let mut best = (0.0, None);
        for (part, (worth, left)) in worth.iter().zip(left).enumerate() {
            if worth * left > best.0 {
                best = (worth * left, Some(part));
            }
        }
        best
    }
}

/// What each row counts for each candidate, one candidate after the other.
fn row_scores(index: &ToolIndex, query: &Query, candidates: &[Option<Choice<'_>>]) -> Vec<f32> {
    const NONE: u32 = u32::MAX;
    let n_rows = query.rows.len();
    let mut places = vec![NONE; index.n_numbers()];
    for (candidate, number) in candidates.iter().zip(0..) {
        let tool = candidate.as_ref().map(|candidate| candidate.number);
        if let Some(place) = tool.and_then(|tool| places.get_mut(place(tool))) {
            *place = number;
        }
    }
    let mut scores = vec![0.0_f32; candidates.len() * n_rows];
    for (row_place, row) in query.rows.iter().enumerate() {
        for meaning in &row.meanings {
            let weight = meaning.worth * row.weight;
            for posting in index.postings_of(meaning.term) {
                let candidate = places.get(place(posting.tool)).copied().unwrap_or(NONE);
                if candidate == NONE {
                    continue;
                }
                if let Some(score) = scores.get_mut(place(candidate) * n_rows + row_place) {
                    *score = score.max(weight * posting.strength);
                }
            }
        }
    }
    scores
}

/// What was chosen before.
#[derive(Default)]
struct Taken<'a> {
    names: HashMap<&'a [Term], usize>,
    servers: HashMap<&'a str, usize>,
}

impl<'a> Taken<'a> {
    fn take(&mut self, tool: &'a Indexed) {
        *self.names.entry(&tool.name).or_default() += 1;
        *self.servers.entry(&tool.server).or_default() += 1;
    }

    /// What part of a tool's score they leave to it.
    fn leaves(&self, tool: &Indexed) -> f32 {
        let of_server = self.servers.get(&*tool.server).copied().unwrap_or_default();
        let diversity = 1.0 / (1.0 + SAME_SERVER * count(of_server));
        if self.names.contains_key(&*tool.name) {
            diversity * SAME_NAME
        } else {
            diversity
        }
    }
}

/// Candidates in order: by score, and by name where that is the same.
struct Ranked<'a>(Choice<'a>);

impl Ord for Ranked<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.0.score().total_cmp(&other.0.score());
        let name = |choice: &Choice<'_>| {
            (
                Arc::clone(&choice.tool.server),
                Arc::clone(&choice.tool.tool),
            )
        };
        by_score.then_with(|| name(&other.0).cmp(&name(&self.0)))
    }
}

impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked<'_> {}
