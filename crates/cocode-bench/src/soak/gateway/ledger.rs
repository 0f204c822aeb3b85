//! What servers have written down: which of their processes there were, and what they have done.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Failure;
use crate::soak::bits::Bits;

/// What all servers together have done.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) done: Bits,
    pub(crate) n_done: u64,
    /// Numbers that were done again.
    pub(crate) again: Vec<u64>,
    pub(crate) n_processes: usize,
}

impl Ledger {
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let mut ledger = Self::default();
        for entry in fs::read_dir(folder)? {
            ledger.n_processes += 1;
            let text = fs::read_to_string(entry?.path())?;
            // A number whose end was not written was not done to the end, and nobody was told so.
            for line in text.split_inclusive('\n') {
                let Some(number) = line.strip_suffix('\n') else {
                    continue;
                };
                let number = number.parse()?;
                ledger.n_done += 1;
                // Zero is asked when nothing is counted.
                if !ledger.done.insert(number) && number != 0 {
                    ledger.again.push(number);
                }
            }
        }
        Ok(ledger)
    }
}

/// The processes that servers have had, by their names.
pub(crate) fn processes(folder: &Path) -> Result<BTreeMap<String, Vec<u32>>, Failure> {
    let mut processes: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let parts = name.to_str().and_then(|name| name.rsplit_once('.'));
        let (server, pid) = parts.ok_or("a file of no process")?;
        processes
            .entry(server.to_owned())
            .or_default()
            .push(pid.parse()?);
    }
    Ok(processes)
}

#[cfg(test)]
mod tests {
    use super::{Ledger, processes};

    #[test]
    fn what_is_done_twice_is_found_whoever_did_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.1"), "1\n2\n0\n").unwrap();
        std::fs::write(folder.path().join("a.2"), "3\n0\n2\n4").unwrap();
        let ledger = Ledger::read(folder.path()).unwrap();
        assert_eq!(
            (ledger.n_done, ledger.again, ledger.n_processes),
            (6, vec![2], 2)
        );
        let mut found = processes(folder.path()).unwrap().remove("a").unwrap();
        found.sort_unstable();
        assert_eq!(found, [1, 2]);
    }
}
