//! The table of all routes.

mod access;
mod calls;
mod general;
mod login;
mod questions;
mod servers;
mod session;
mod sharing;
mod tools;

use std::sync::LazyLock;

use crate::route::Route;

static ALL: LazyLock<Vec<Route>> = LazyLock::new(|| {
    [
        session::routes(),
        general::routes(),
        servers::routes(),
        sharing::routes(),
        login::routes(),
        tools::routes(),
        calls::routes(),
        questions::routes(),
        access::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
});

/// All of them.
pub(crate) fn all() -> &'static [Route] {
    &ALL
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;
    use crate::guard::answers;

    #[test]
    fn every_route_has_a_place_a_name_and_words_of_its_own() {
        let mut seen = BTreeSet::new();
        for route in all() {
            assert!(seen.insert(route.id), "{route:?} is named like another");
            assert!(route.summary.ends_with('.'), "{route:?}");
            assert!(!route.answers.is_empty(), "{route:?}");
            // No path leads to two routes: a name in a path could be any word.
            let segments: Vec<_> = route.path.split('/').map(str::to_owned).collect();
            let others = all().iter().filter(|other| {
                other.matches(&segments).is_some() && answers(other, &route.method)
            });
            assert_eq!(others.count(), 1, "{route:?}");
        }
    }
}
