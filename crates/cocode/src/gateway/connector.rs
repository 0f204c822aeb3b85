//! Reaches everything that a gateway serves: servers that stand in files, and the built-in tools.

use cocode_client::{Answer, Connector, ReachError, Reached};
use cocode_core::ServerSpec;

use super::builtin::BuiltIn;
use crate::reach::Configured;

#[derive(Debug)]
pub(crate) struct Ways {
    pub(crate) configured: Configured,
    pub(crate) built_in: Option<BuiltIn>,
}

impl Ways {
    fn built_in(&self, spec: &ServerSpec) -> Option<&BuiltIn> {
        self.built_in.as_ref().filter(|built_in| built_in.is(spec))
    }
}

impl Connector for Ways {
    fn reach<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        match self.built_in(spec) {
            Some(built_in) => Box::pin(async { Ok(built_in.reach()) }),
            None => self.configured.reach(spec),
        }
    }

    fn identity(&self, spec: &ServerSpec) -> Option<Vec<String>> {
        match self.built_in(spec) {
            Some(_) => Some(Vec::new()),
            None => self.configured.identity(spec),
        }
    }

    fn sharing(&self, spec: &ServerSpec) -> Option<Vec<String>> {
        match self.built_in(spec) {
            // What it is made of is all in its specification.
            Some(_) => Some(Vec::new()),
            None => self.configured.sharing(spec),
        }
    }

    fn admitted<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, ()> {
        match self.built_in(spec) {
            Some(_) => Box::pin(std::future::pending()),
            None => self.configured.admitted(spec),
        }
    }
}
