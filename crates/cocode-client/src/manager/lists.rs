//! What one server has listed: by itself on this connection, or as it is remembered from before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cocode_core::{ServerName, ToolName};
use cocode_wire::RawJson;

use crate::error::RequestError;
use crate::features::{Prompt, Resource, ResourceTemplate, Tool};
use crate::list_cache::{Freshness, ListKind, Remembered, RememberedList};
use crate::pages::{Incomplete, Listing, MAX_LIST_BYTES, Quarantined};
use crate::schema::SchemaCell;
use crate::server::{ServerCapabilities, ServerFacts};

/// How often a list that is never fresh is read again.
const REVALIDATED_AT_MOST_EVERY: Duration = Duration::from_mins(1);

/// A tool, and the schemas that its arguments and results are checked with.
#[derive(Debug)]
pub struct CatalogTool {
    /// The server's name for it.
    pub name: ToolName,
    /// How the server describes it.
    pub tool: Tool,
    /// The schema of its arguments, compiled when it is first needed.
    pub input: SchemaCell,
    /// The schema of its structured output.
    pub output: Option<SchemaCell>,
}

/// Everything one server has listed.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) tools: List<CatalogTool>,
    pub(crate) resources: List<Resource>,
    pub(crate) templates: List<ResourceTemplate>,
    pub(crate) prompts: List<Prompt>,
    pub(crate) unlisted: BTreeMap<ListKind, String>,
    /// The connection on which a list was last read, or could not be.
    pub(crate) tried: BTreeMap<ListKind, u64>,
    pub(crate) instructions: Option<String>,
    /// What the server says it can do, if it was ever heard.
    pub(crate) capabilities: Option<ServerCapabilities>,
}

/// Time of day and default TTL, by which lists become stale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListClock {
    pub(crate) time: SystemTime,
    pub(crate) default_ttl: Duration,
}

impl ListClock {
    fn is_stale(self, list: &RememberedList) -> bool {
        list.freshness_by(self.default_ttl, self.time) == Freshness::Stale
    }
}

/// One list.
#[derive(Debug)]
pub(crate) struct List<T> {
    known: Option<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    items: Vec<Arc<T>>,
    quarantined: Vec<Quarantined>,
    asked: Asked,
    remembered: RememberedList,
}

/// Who was asked for a list, and when. Of two that were asked for side by side, the one that was
/// asked for later counts, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The number of the connection; none for what another manager wrote down.
    pub(crate) connection: Option<u64>,
    /// Counts what was asked.
    pub(crate) number: u64,
    /// The time of day.
    pub(crate) at: SystemTime,
}

/// Something that is listed.
pub(crate) trait Listed: Sized {
    /// What it is read from.
    type Item;
    /// By what it is sorted, and known.
    fn key(&self) -> &str;
    /// Takes it over.
    fn adopt(item: Self::Item) -> Self;
    /// The whole of it as it came.
    fn raw(&self) -> &RawJson;
}

impl CatalogTool {
    pub(crate) fn is_described_like(&self, other: &Self) -> bool {
        self.tool.raw == other.tool.raw
    }
}

impl Listed for CatalogTool {
    type Item = Tool;

    fn key(&self) -> &str {
        self.name.as_str()
    }

    fn adopt(tool: Tool) -> Self {
        Self {
            name: ToolName::new(tool.name.as_str()),
            input: SchemaCell::new(tool.input_schema.clone()),
            output: tool.output_schema.clone().map(SchemaCell::new),
            tool,
        }
    }

    fn raw(&self) -> &RawJson {
        &self.tool.raw
    }
}

/// Things that are kept as they were read.
macro_rules! listed_as_is {
    ($kind:ty, $key:ident) => {
        impl Listed for $kind {
            type Item = Self;

            fn key(&self) -> &str {
                &self.$key
            }

            fn adopt(item: Self) -> Self {
                item
            }

            fn raw(&self) -> &RawJson {
                &self.raw
            }
        }
    };
}

listed_as_is!(Resource, uri);
listed_as_is!(ResourceTemplate, uri_template);
listed_as_is!(Prompt, name);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { known: None }
    }
}

impl<T: Listed> List<T> {
    pub(crate) fn items(&self) -> &[Arc<T>] {
        self.known.as_ref().map_or(&[], |known| &known.items)
    }

    pub(crate) fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Whether the list was read on a connection of ours, and not only remembered.
    pub(crate) fn is_first_hand(&self) -> bool {
        let known = self.known.as_ref();
        known.is_some_and(|known| known.asked.connection.is_some())
    }

    /// Whether it is older than the server, or the custom, allows.
    pub(crate) fn is_stale(&self, now: ListClock) -> bool {
        let known = self.known.as_ref();
        known.is_none_or(|known| now.is_stale(&known.remembered))
    }

    /// Whether the server is to be asked again, while what is known is still used. One that says
    /// that nothing stays fresh is asked now and then, not at every look.
    pub(crate) fn is_to_be_revalidated(&self, now: ListClock) -> bool {
        self.known.as_ref().is_some_and(|known| {
            let remembered = &known.remembered;
            let age = now.time.duration_since(remembered.fetched_at);
            let rested = age.map_or(true, |age| age >= REVALIDATED_AT_MOST_EVERY);
            rested && now.is_stale(remembered)
        })
    }

    /// Takes over a listing. Of two things with one name the first counts, as for the server.
    /// What did not change keeps what was made of it, such as compiled schemas.
    pub(crate) fn update(&mut self, listing: Listing<T::Item>, asked: Asked) {
        let is_older = |known: &Known<T>| known.asked.number > asked.number;
        if self.known.as_ref().is_some_and(is_older) {
            return;
        }
        let before = self.known.take();
        let before: BTreeMap<&str, &Arc<T>> = before
            .iter()
            .flat_map(|known| &known.items)
            .map(|item| (item.key(), item))
            .collect();
        let mut quarantined = listing.quarantined;
        let mut seen = BTreeSet::new();
        let mut items = Vec::with_capacity(listing.items.len());
        for item in listing.items {
            let adopted = T::adopt(item);
            if !seen.insert(adopted.key().to_owned()) {
                quarantined.push(Quarantined {
                    name: Some(adopted.key().to_owned()),
                    reason: "its name was listed before".into(),
                });
                continue;
            }
            let same = before
                .get(adopted.key())
                .filter(|old| old.raw() == adopted.raw());
            items.push(same.map_or_else(|| Arc::new(adopted), |old| Arc::clone(old)));
        }
        items.sort_by(|one, other| one.key().cmp(other.key()));
        self.known = Some(Known {
            items,
            quarantined,
            asked,
            remembered: RememberedList {
                pages: listing.pages,
                fetched_at: asked.at,
                ttl: listing.ttl,
                cache_scope: listing.cache_scope,
            },
        });
    }

    /// A server that says it has none of these.
    pub(crate) fn clear(&mut self, asked: Asked) {
        let listing = Listing {
            items: Vec::new(),
            quarantined: Vec::new(),
            incomplete: None,
            pages: Vec::new(),
            ttl: None,
            cache_scope: None,
        };
        self.update(listing, asked);
    }

    fn quarantined(&self) -> &[Quarantined] {
        self.known.as_ref().map_or(&[], |known| &known.quarantined)
    }

    fn remembered(&self) -> Option<&RememberedList> {
        self.known.as_ref().map(|known| &known.remembered)
    }
}

impl Lists {
    /// What was remembered of a server. A list that cannot be read any more is as good as none.
    pub(crate) fn of(remembered: Remembered) -> Self {
        let facts = remembered.facts();
        let mut lists = Self::default();
        if let Some(facts) = &facts {
            lists.introduce(facts);
        }
        for (kind, list) in remembered.lists {
            let asked = Asked {
                connection: None,
                number: 0,
                at: list.fetched_at,
            };
            let (ttl, scope) = (list.ttl, list.cache_scope.clone());
            let pages = list.pages;
            let read = match kind {
                ListKind::Tools => Listing::<Tool>::from_pages(pages).map(|listing| {
                    lists.tools.update(with(listing, ttl, scope), asked);
                }),
                ListKind::Resources => Listing::<Resource>::from_pages(pages).map(|listing| {
                    lists.resources.update(with(listing, ttl, scope), asked);
                }),
                ListKind::ResourceTemplates => {
                    Listing::<ResourceTemplate>::from_pages(pages).map(|listing| {
                        lists.templates.update(with(listing, ttl, scope), asked);
                    })
                }
                ListKind::Prompts => Listing::<Prompt>::from_pages(pages).map(|listing| {
                    lists.prompts.update(with(listing, ttl, scope), asked);
                }),
            };
            if let Err(error) = read {
                tracing::debug!(%error, ?kind, "a remembered list cannot be read");
            }
        }
        lists
    }

    /// Takes over a listing, unless all lists together would be too large. The older list stays then.
    pub(crate) fn take_over<T: Listed>(
        &mut self,
        (server, kind): (&ServerName, ListKind),
        listing: Listing<T::Item>,
        asked: Asked,
        list: impl FnOnce(&mut Self) -> &mut List<T>,
    ) -> Result<(), RequestError> {
        let others = ListKind::ALL.into_iter().filter(|other| *other != kind);
        let pages = others.filter_map(|other| Some(&self.remembered(other)?.pages));
        let pages = pages.chain([&listing.pages]).flatten();
        let bytes: usize = pages.map(|page| page.as_bytes().len()).sum();
        if bytes > MAX_LIST_BYTES || listing.incomplete == Some(Incomplete::TooManyBytes) {
            return Err(RequestError::Unexpected {
                method: kind.method().to_owned(),
                reason: format!(
                    "the lists of server `{server}` have more than {} MiB together",
                    MAX_LIST_BYTES >> 20
                ),
            });
        }
        list(self).update(listing, asked);
        Ok(())
    }

    /// Takes over what a server says about itself.
    pub(crate) fn introduce(&mut self, facts: &ServerFacts) {
        self.instructions.clone_from(&facts.instructions);
        self.capabilities = Some(facts.capabilities.clone());
    }

    /// The lists that are known, on this connection or from before.
    pub(crate) fn known(&self) -> BTreeSet<ListKind> {
        let all = ListKind::ALL.into_iter();
        all.filter(|kind| self.is_known(*kind)).collect()
    }

    pub(crate) fn is_known(&self, kind: ListKind) -> bool {
        match kind {
            ListKind::Tools => self.tools.is_known(),
            ListKind::Resources => self.resources.is_known(),
            ListKind::ResourceTemplates => self.templates.is_known(),
            ListKind::Prompts => self.prompts.is_known(),
        }
    }

    /// Whether every list was read on this connection, or could not be.
    pub(crate) fn are_all_settled(&self, connection: u64) -> bool {
        let is_tried = |kind| self.tried.get(&kind) == Some(&connection);
        ListKind::ALL.into_iter().all(is_tried)
    }

    /// One list as it is to be remembered.
    pub(crate) fn remembered(&self, kind: ListKind) -> Option<&RememberedList> {
        match kind {
            ListKind::Tools => self.tools.remembered(),
            ListKind::Resources => self.resources.remembered(),
            ListKind::ResourceTemplates => self.templates.remembered(),
            ListKind::Prompts => self.prompts.remembered(),
        }
    }

    /// What these lists were made of.
    pub(crate) fn pages_of(&self, kinds: &BTreeSet<ListKind>) -> Vec<Vec<RawJson>> {
        let lists = kinds.iter().filter_map(|kind| self.remembered(*kind));
        lists.map(|list| list.pages.clone()).collect()
    }

    /// Which lists are to be asked for again, while what is known is still used.
    pub(crate) fn to_be_revalidated(&self, now: ListClock) -> Vec<ListKind> {
        let lists = [
            (ListKind::Tools, self.tools.is_to_be_revalidated(now)),
            (
                ListKind::Resources,
                self.resources.is_to_be_revalidated(now),
            ),
            (
                ListKind::ResourceTemplates,
                self.templates.is_to_be_revalidated(now),
            ),
            (ListKind::Prompts, self.prompts.is_to_be_revalidated(now)),
        ];
        let stale = lists.into_iter().filter(|(_, is_stale)| *is_stale);
        stale.map(|(kind, _)| kind).collect()
    }

    /// Whether a list can be used as it is.
    pub(crate) fn is_stale(&self, kind: ListKind, now: ListClock) -> bool {
        match kind {
            ListKind::Tools => self.tools.is_stale(now),
            ListKind::Resources => self.resources.is_stale(now),
            ListKind::ResourceTemplates => self.templates.is_stale(now),
            ListKind::Prompts => self.prompts.is_stale(now),
        }
    }

    /// The lists as they are to be remembered.
    pub(crate) fn to_remember(&self) -> BTreeMap<ListKind, RememberedList> {
        let lists = ListKind::ALL.into_iter();
        let known = lists.filter_map(|kind| Some((kind, self.remembered(kind)?.clone())));
        known.collect()
    }

    pub(crate) fn quarantined(&self) -> Vec<(ListKind, Quarantined)> {
        let of = |kind: ListKind, list: &[Quarantined]| {
            list.iter()
                .map(move |quarantined| (kind, quarantined.clone()))
                .collect::<Vec<_>>()
        };
        [
            of(ListKind::Tools, self.tools.quarantined()),
            of(ListKind::Resources, self.resources.quarantined()),
            of(ListKind::ResourceTemplates, self.templates.quarantined()),
            of(ListKind::Prompts, self.prompts.quarantined()),
        ]
        .concat()
    }
}

fn with<T>(
    mut listing: Listing<T>,
    ttl: Option<Duration>,
    cache_scope: Option<String>,
) -> Listing<T> {
    listing.ttl = ttl;
    listing.cache_scope = cache_scope;
    listing
}
