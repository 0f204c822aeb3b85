//! What callers of the agent get at most. Whoever sets no limit trusts them with everything that the
//! organization allows.

use std::path::{Path, PathBuf};

use cocode_agent::Settings;
use cocode_agent::serve::SetupError;
use cocode_core::SandboxMode;

use super::{Granted, OwnFiles, wrong};

/// The limits of one conversation.
#[derive(Debug)]
pub(super) struct Limits<'a> {
    /// The most that tools may touch.
    pub(super) ceiling: Option<SandboxMode>,
    /// The directory that callers have to stay in.
    pub(super) root: Option<&'a Path>,
    /// What no writable directory may expose.
    pub(super) withheld: &'a OwnFiles,
    /// What whoever runs the server has configured, which counts wherever it is.
    pub(super) configured: Granted,
}

impl Limits<'_> {
    /// The settings of a conversation that begins. What a caller may not ask for is an error.
    pub(super) fn of_new(&self, settings: Settings) -> Result<Settings, SetupError> {
        let mut settings = self.in_place(settings)?;
        if !self.is_limited() {
            return Ok(settings);
        }
        if settings.network && !self.configured.network {
            return Err(wrong(
                "`config.network` is `true`, and callers cannot allow the network here".to_owned(),
                "leave it out, or have whoever runs this server set `network` in `[agent]`",
            ));
        }
        // Callers cannot leave out what is configured.
        let is_wanted = |root: &&PathBuf| !self.is_configured(root) || !self.is_withheld(root);
        let roots = settings.writable.iter().filter(is_wanted);
        settings.writable = roots
            .map(|root| self.writable(root).ok_or_else(|| self.outside(root)))
            .collect::<Result<_, _>>()?;
        Ok(settings)
    }

    /// The settings of a conversation that goes on. What is not allowed any more is left out.
    pub(super) fn of_kept(&self, settings: Settings) -> Result<Settings, SetupError> {
        let mut settings = self.in_place(settings)?;
        if self.is_limited() {
            settings.network &= self.configured.network;
            let roots = settings.writable.iter();
            settings.writable = roots.filter_map(|root| self.writable(root)).collect();
        }
        Ok(settings)
    }

    fn is_limited(&self) -> bool {
        self.ceiling.is_some() || self.root.is_some()
    }

    fn in_place(&self, mut settings: Settings) -> Result<Settings, SetupError> {
        if let Some(ceiling) = self.ceiling {
            settings.sandbox = settings.sandbox.min(ceiling);
        }
        if let Some(root) = self.root
            && !settings.cwd.starts_with(root)
        {
            let (cwd, root) = (settings.cwd.display(), root.display());
            return Err(wrong(
                format!("`cwd` is {cwd}, which is not below {root}"),
                "this agent works there and nowhere else",
            ));
        }
        Ok(settings)
    }

    /// A directory as it may be written: where it leads now, so that nobody is led elsewhere by its name.
    fn writable(&self, path: &Path) -> Option<PathBuf> {
        if self.is_withheld(path) {
            return None;
        }
        if self.is_configured(path) {
            return Some(path.to_owned());
        }
        let found = std::fs::canonicalize(path).ok()?;
        let is_inside = self.root.is_some_and(|root| found.starts_with(root));
        is_inside.then_some(found)
    }

    fn is_configured(&self, path: &Path) -> bool {
        self.configured.writable.iter().any(|known| known == path)
    }

    fn is_withheld(&self, path: &Path) -> bool {
        let exposed = self.withheld.exposed_by(path);
        if let Some(exposed) = exposed {
            let (path, exposed) = (path.display(), exposed.display());
            tracing::warn!(%path, %exposed, "writable root withheld: it exposes the gateway's own files");
        }
        exposed.is_some()
    }

    fn outside(&self, path: &Path) -> SetupError {
        if self.withheld.exposed_by(path).is_some() {
            let path = path.display();
            return wrong(
                format!(
                    "`config.writable_roots` names {path}, which has files of the gateway or is among them"
                ),
                "name another directory",
            );
        }
        let path = path.display();
        match self.root {
            Some(root) => wrong(
                format!(
                    "`config.writable_roots` names {path}, which is no directory below {}",
                    root.display()
                ),
                "this agent writes there and nowhere else",
            ),
            None => wrong(
                format!(
                    "`config.writable_roots` names {path}, and callers cannot name directories here"
                ),
                "have whoever runs this server set `writable_roots` in `[agent]`",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use cocode_agent::{ModelChoice, Settings};
    use cocode_core::{ApprovalPolicy, SandboxMode};

    use super::{Granted, Limits, OwnFiles};

    fn settings(cwd: &Path, writable: &[&Path], network: bool) -> Settings {
        Settings {
            cwd: cwd.to_owned(),
            model: ModelChoice::default(),
            approval: ApprovalPolicy::OnRequest,
            sandbox: SandboxMode::DangerFullAccess,
            network,
            writable: writable.iter().map(|path| (*path).to_owned()).collect(),
            base_instructions: None,
            developer_instructions: None,
            compact_prompt: None,
            max_steps: None,
        }
    }

    /// A root with a directory and a link that leads out of it, and a directory beside it.
    struct Place {
        _all: tempfile::TempDir,
        root: PathBuf,
        inside: PathBuf,
        outside: PathBuf,
        link: PathBuf,
        withheld: OwnFiles,
    }

    impl Place {
        fn new() -> Self {
            let all = tempfile::tempdir().unwrap();
            let top = all.path().canonicalize().unwrap();
            let (root, outside) = (top.join("root"), top.join("outside"));
            let (inside, link) = (root.join("inside"), root.join("link"));
            std::fs::create_dir_all(&inside).unwrap();
            std::fs::create_dir(&outside).unwrap();
            std::os::unix::fs::symlink(&outside, &link).unwrap();
            Self {
                _all: all,
                root,
                inside,
                outside,
                link,
                withheld: OwnFiles::default(),
            }
        }

        fn limits(&self, network: bool, writable: &[&Path]) -> Limits<'_> {
            Limits {
                ceiling: Some(SandboxMode::WorkspaceWrite),
                root: Some(&self.root),
                withheld: &self.withheld,
                configured: Granted {
                    network,
                    writable: writable.iter().map(|path| (*path).to_owned()).collect(),
                },
            }
        }
    }

    #[test]
    fn nothing_is_written_outside_of_the_root_but_what_is_configured() {
        let place = Place::new();
        let dotted = place.inside.join("../../outside");
        let missing = place.root.join("missing");
        for path in [&place.outside, &place.link, &dotted, &missing] {
            let wanted = settings(&place.root, &[path], false);
            let refused = place.limits(false, &[]).of_new(wanted.clone());
            let message = refused.unwrap_err().message;
            assert!(message.contains("`config.writable_roots`"), "{message}");
            let kept = place.limits(false, &[]).of_kept(wanted).unwrap();
            assert!(kept.writable.is_empty(), "{:?}", kept.writable);
        }
        let wanted = settings(&place.root, &[&place.outside, &place.inside], false);
        let limits = place.limits(false, &[&place.outside]);
        let given = limits.of_new(wanted.clone()).unwrap();
        assert_eq!(given.writable, [&*place.outside, &*place.inside]);
        assert_eq!(given.sandbox, SandboxMode::WorkspaceWrite);
        assert_eq!(limits.of_kept(wanted).unwrap(), given);
    }

    #[test]
    fn nothing_is_written_that_exposes_files_of_the_gateway() {
        let mut place = Place::new();
        let (above, own) = (place.outside.clone(), place.outside.join("state"));
        let below = own.join("plugins");
        std::fs::create_dir_all(&below).unwrap();
        place.withheld = OwnFiles::of([own.clone(), place.inside.join("socket")]);
        for root in [&above, &own, &below] {
            let limits = place.limits(false, &[root]);
            let wanted = settings(&place.root, &[root], false);
            assert!(limits.of_new(wanted.clone()).unwrap().writable.is_empty());
            assert!(limits.of_kept(wanted).unwrap().writable.is_empty());
        }
        let wanted = settings(&place.root, &[&place.inside], false);
        let refused = place.limits(false, &[]).of_new(wanted.clone());
        let message = refused.unwrap_err().message;
        assert!(message.contains("files of the gateway"), "{message}");
        let kept = place.limits(false, &[]).of_kept(wanted).unwrap();
        assert!(kept.writable.is_empty());
    }

    #[test]
    fn the_network_is_only_what_is_configured() {
        let place = Place::new();
        let wanted = settings(&place.root, &[], true);
        let refused = place.limits(false, &[]).of_new(wanted.clone());
        let message = refused.unwrap_err().message;
        assert!(message.contains("`config.network`"), "{message}");
        let limits = place.limits(false, &[]);
        assert!(!limits.of_kept(wanted.clone()).unwrap().network);
        let limits = place.limits(true, &[]);
        assert!(limits.of_new(wanted.clone()).unwrap().network);
        assert!(limits.of_kept(wanted).unwrap().network);
    }

    #[test]
    fn nobody_works_outside_of_the_root() {
        let place = Place::new();
        let limits = place.limits(false, &[]);
        for cwd in [&place.outside, &place.root.with_file_name("rooted")] {
            let wanted = settings(cwd, &[], false);
            assert!(limits.of_new(wanted.clone()).is_err(), "{cwd:?}");
            assert!(limits.of_kept(wanted).is_err(), "{cwd:?}");
        }
        let wanted = settings(&place.inside, &[], false);
        assert!(limits.of_new(wanted).is_ok());
    }

    #[test]
    fn a_ceiling_without_a_root_lets_callers_name_no_directories() {
        let place = Place::new();
        let limits = Limits {
            root: None,
            ..place.limits(false, &[])
        };
        let wanted = settings(&place.root, &[&place.inside], false);
        assert!(limits.of_new(wanted).is_err());
    }

    #[test]
    fn without_limits_callers_get_what_they_ask_for() {
        let place = Place::new();
        let limits = Limits {
            ceiling: None,
            root: None,
            withheld: &place.withheld,
            configured: Granted {
                network: false,
                writable: Vec::new(),
            },
        };
        let wanted = settings(&place.outside, &[&place.link], true);
        assert_eq!(limits.of_new(wanted.clone()).unwrap(), wanted);
        assert_eq!(limits.of_kept(wanted.clone()).unwrap(), wanted);
    }
}
