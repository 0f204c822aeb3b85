//! Every path at which reading the configuration looks, whether or not something is there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::plugins;
use crate::scope::{LOCAL_FILE, PROJECT_FILES, Places};

impl Places {
    /// Every path whose change may change what [`Config::load`](crate::Config::load) gives, whether
    /// or not something is there. Which ones these are may change with them: a list of plugins, or
    /// where the work tree begins.
    pub fn looked_at(&self) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::from([self.policy(), self.approvals()]);
        files.extend(self.managed());
        files.extend(self.server_files().into_iter().map(|place| place.path));
        files.extend(self.settings_files().into_iter().map(|place| place.path));
        if !self.explicit.is_empty() {
            return files;
        }
        let list = self.plugins();
        files.extend(plugins::looked_at(&list));
        files.insert(list);
        files.extend(self.marks_of_work_trees());
        files
    }

    /// What decides where the work tree begins.
    fn marks_of_work_trees(&self) -> Vec<PathBuf> {
        let Some(root) = self.work_tree() else {
            return Vec::new();
        };
        let is_repository = root.join(".git").exists();
        let mut marks = Vec::new();
        for directory in self.ancestors() {
            marks.push(directory.join(".git"));
            // Without a repository, the nearest file of ours makes the work tree.
            if !is_repository {
                let names = PROJECT_FILES.iter().map(|(name, _)| *name);
                let names = names.chain([LOCAL_FILE]);
                marks.extend(names.map(|name| directory.join(name)));
            }
            if is_repository && directory == root {
                break;
            }
        }
        marks
    }
}
