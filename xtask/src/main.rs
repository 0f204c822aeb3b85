//! The project's own automation: test, conformance, bench, tidy, docs.

fn main() {}
