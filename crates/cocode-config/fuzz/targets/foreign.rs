//! Files of other tools.
#![no_main]

use cocode_config::{Place, PlaceScope, Tool, read_foreign};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for tool in Tool::ALL {
        for (scope, project) in [
            (PlaceScope::User, None),
            (PlaceScope::Project, Some("/p".into())),
        ] {
            let place = Place {
                path: "/f".into(),
                scope,
                project,
            };
            let _servers = read_foreign(tool, &place, text);
        }
    }
});
