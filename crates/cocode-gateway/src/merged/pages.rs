//! Lists as they are sent: written down once, and then only copied.

use bytes::Bytes;
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;

/// Items of one page.
const MAX_PAGE_ITEMS: usize = 5_000;
/// Bytes of one page, unless a single item is larger: clients have limits for a message.
const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// What the cursors begin with; the rest is the number of the page.
const CURSOR: &str = "page-";

/// A whole list in pages. Each is the end of a result, from the member that holds the items to the
/// closing brace: what comes before it depends on who asks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pages(Vec<Bytes>);

impl Pages {
    /// Writes down a list.
    pub(crate) fn of(member: &str, items: impl IntoIterator<Item = RawJson>) -> Self {
        let begin = || format!("\"{member}\":[").into_bytes();
        let mut pages: Vec<Bytes> = Vec::new();
        let (mut page, mut n_items) = (begin(), 0);
        for item in items {
            let is_full =
                n_items >= MAX_PAGE_ITEMS || page.len() + item.as_bytes().len() > MAX_PAGE_BYTES;
            if is_full && n_items > 0 {
                let next = format!("],\"nextCursor\":\"{CURSOR}{}\"}}", pages.len() + 2);
                page.extend_from_slice(next.as_bytes());
                pages.push(std::mem::replace(&mut page, begin()).into());
                n_items = 0;
            }
            if n_items > 0 {
                page.push(b',');
            }
            page.extend_from_slice(item.as_bytes());
            n_items += 1;
        }
        page.extend_from_slice(b"]}");
        pages.push(page.into());
        Self(pages)
    }

    /// The page that the parameters of a request ask for.
    pub(crate) fn asked_for(&self, params: Option<&RawJson>) -> Result<Bytes, RpcError> {
        #[derive(Deserialize)]
        struct Params {
            #[serde(default)]
            cursor: Option<String>,
        }
        let invalid = || RpcError::new(code::INVALID_PARAMS, "the `cursor` is unknown");
        let params = params.map(RawJson::decode::<Params>).transpose();
        let params = params.map_err(|_not_a_text| invalid())?;
        let number = match params.and_then(|params| params.cursor) {
            None => 1,
            Some(cursor) => {
                let number = cursor
                    .strip_prefix(CURSOR)
                    .and_then(|number| number.parse().ok());
                number.filter(|number| *number > 1).ok_or_else(invalid)?
            }
        };
        self.0.get(number - 1).cloned().ok_or_else(invalid)
    }
}

/// An item with this text as one of its members, which it has already; everything else is as it
/// was.
pub(crate) fn with_text(item: &RawJson, member: &str, text: &str) -> Option<RawJson> {
    let members: Members<'_> = item.decode().ok()?;
    let text = RawJson::of(text).ok()?;
    Some(item.with_part(members.get(member)?, &text))
}

#[cfg(test)]
mod tests {
    use cocode_wire::RawJson;

    use super::{MAX_PAGE_BYTES, MAX_PAGE_ITEMS, Pages, with_text};

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    fn page(pages: &Pages, params: &str) -> Option<String> {
        let page = pages.asked_for(Some(&json(params))).ok()?;
        Some(String::from_utf8(page.to_vec()).unwrap())
    }

    #[test]
    fn a_list_that_fits_is_one_page() {
        let pages = Pages::of("tools", [json(r#"{"n": 1.10}"#), json("2")]);
        assert_eq!(page(&pages, "{}").unwrap(), r#""tools":[{"n": 1.10},2]}"#);
        assert_eq!(
            page(&Pages::of("tools", []), "{}").unwrap(),
            r#""tools":[]}"#
        );
        assert!(pages.asked_for(None).is_ok());
    }

    #[test]
    fn a_long_list_is_cut_and_every_cursor_leads_on() {
        let items = (0..=MAX_PAGE_ITEMS * 2).map(|number| json(&number.to_string()));
        let pages = Pages::of("x", items);
        let mut cursor: Option<String> = None;
        let mut seen: Vec<u64> = Vec::new();
        loop {
            let params = serde_json::json!({ "cursor": cursor }).to_string();
            let whole = format!("{{{}", page(&pages, &params).unwrap());
            let whole: serde_json::Value = serde_json::from_str(&whole).unwrap();
            let items = whole["x"].as_array().unwrap();
            assert!(items.len() <= MAX_PAGE_ITEMS);
            seen.extend(items.iter().filter_map(serde_json::Value::as_u64));
            cursor = whole["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..=MAX_PAGE_ITEMS as u64 * 2).collect::<Vec<_>>());
    }

    #[test]
    fn pages_are_of_bounded_size_unless_an_item_is_not() {
        let large = format!("\"{}\"", "x".repeat(MAX_PAGE_BYTES));
        let pages = Pages::of("x", [json("1"), json(&large), json("2")]);
        assert_eq!(pages.0.len(), 3);
    }

    #[test]
    fn cursors_of_others_are_refused() {
        let pages = Pages::of("x", []);
        for cursor in [
            "\"\"",
            "\"page-0\"",
            "\"page-1\"",
            "\"page-2\"",
            "\"2\"",
            "7",
            "\"page--1\"",
        ] {
            assert_eq!(
                page(&pages, &format!(r#"{{"cursor":{cursor}}}"#)),
                None,
                "{cursor}"
            );
        }
        assert!(page(&pages, r#"{"cursor":null}"#).is_some());
    }

    #[test]
    fn one_member_is_replaced() {
        let item = json(r#"{"x": {"name":1}, "name" : "a", "y":1e400}"#);
        let changed = with_text(&item, "name", "b\"").unwrap();
        assert_eq!(
            changed.as_str(),
            r#"{"x": {"name":1}, "name" : "b\"", "y":1e400}"#
        );
        assert_eq!(with_text(&item, "z", "b"), None);
    }
}
