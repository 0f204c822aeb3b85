//! A page for each code, and all of them inside the program.

use std::collections::BTreeSet;
use std::path::Path;

use super::PAGES;
use crate::error::Code;

/// The codes of this program, of the library, and of what gateways tell clients.
fn codes() -> BTreeSet<&'static str> {
    let own = Code::ALL.map(Code::as_str);
    let all = own.into_iter().chain(cocode_client::ERROR_CODES);
    all.chain([cocode_wire::serve::GATEWAY_LOST]).collect()
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors");
    let codes = codes();
    let index = std::fs::read_to_string(directory.join("README.md")).unwrap();
    for code in &codes {
        let page = std::fs::read_to_string(directory.join(format!("{code}.md")));
        let page = page.unwrap_or_else(|error| panic!("docs/errors/{code}.md: {error}"));
        assert!(
            page.starts_with(&format!("# {code}\n")),
            "{code}.md has another title"
        );
        for section in ["## What happened", "## Usual causes", "## What to do"] {
            assert!(page.contains(section), "{code}.md lacks `{section}`");
        }
        assert!(
            index.contains(&format!("({code}.md)")),
            "the index lacks {code}"
        );
    }
    for entry in std::fs::read_dir(&directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let code = name.strip_suffix(".md").unwrap_or(&name);
        assert!(
            code == "README" || codes.contains(code),
            "no error has the code {code}"
        );
    }
}

#[test]
fn the_program_holds_every_page_in_order() {
    let codes = codes();
    let held: Vec<&str> = PAGES.iter().map(|page| page.code).collect();
    assert_eq!(held, codes.into_iter().collect::<Vec<_>>());
}

#[test]
fn every_page_has_a_summary_of_one_sentence() {
    for page in PAGES {
        let summary = page.summary();
        assert!(
            summary.len() > 20 && !summary.contains(". "),
            "{}: {summary:?}",
            page.code
        );
    }
}
