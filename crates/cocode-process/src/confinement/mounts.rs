//! Other paths of the same files: bind mounts, and further mounts of one file system.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One line of `/proc/self/mountinfo`.
struct Mount {
    /// Numbers of the device.
    device: Vec<u8>,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

/// Adds the paths by which the mounts of this process show the given ones, or a part of them, once more.
pub(super) fn add_aliases(paths: &mut Vec<PathBuf>) {
    let mounts = match std::fs::read("/proc/self/mountinfo") {
        Ok(mounts) => mounts,
        Err(error) => {
            tracing::warn!(%error, "cannot read the mounts of this process");
            return;
        }
    };
    let lines = mounts.split(|byte| *byte == b'\n');
    let mounts: Vec<Mount> = lines.filter_map(Mount::parse).collect();
    let aliases = paths.iter().flat_map(|path| aliases(path, &mounts));
    let aliases: Vec<PathBuf> = aliases.collect();
    paths.extend(aliases);
}

fn aliases(path: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    let holding = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    // The last of those at the same place covers the others.
    let holding = holding.max_by_key(|mount| mount.point.components().count());
    let holding = holding.and_then(|mount| {
        let below = path.strip_prefix(&mount.point).ok()?;
        Some((mount, mount.root.join(below)))
    });
    // Other file systems that are mounted inside.
    let inside = mounts.iter().filter(|mount| mount.point.starts_with(path));
    let inside = inside.map(|mount| (mount, mount.root.clone()));
    let shown = holding
        .into_iter()
        .chain(inside)
        .flat_map(|(from, directory)| {
            let others = mounts
                .iter()
                .filter(|mount| mount.device == from.device && mount.point != from.point);
            others.filter_map(move |mount| match directory.strip_prefix(&mount.root) {
                // Without a slash at its end.
                Ok(below) => Some(mount.point.join(below).components().collect()),
                Err(_) => mount
                    .root
                    .starts_with(&directory)
                    .then(|| mount.point.clone()),
            })
        });
    shown.filter(|alias| *alias != path).collect()
}

impl Mount {
    /// Number, parent, device, root, mount point, and more.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        Some(Self {
            device: fields.next()?.to_owned(),
            root: decoded(fields.next()?),
            point: decoded(fields.next()?),
        })
    }
}

/// Blanks, tabs, line ends and backslashes are written as a backslash and three octal digits.
fn decoded(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = after.get(3..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Mount, aliases};

    #[test]
    fn paths_are_found_below_every_mount_that_shows_them() {
        let mounts = [
            "21 1 8:1 / / rw - ext4 /dev/sda1 rw",
            "22 21 8:1 /users/a /mnt/with\\040blank rw - ext4 /dev/sda1 rw",
            "23 21 8:2 / /users/b rw - ext4 /dev/sdb1 rw",
            "24 21 8:1 /srv /other rw - ext4 /dev/sda1 rw",
            "25 21 8:2 /state /srv/b rw - ext4 /dev/sdb1 rw",
        ];
        let lines = mounts.into_iter().map(str::as_bytes);
        let mounts: Vec<Mount> = lines.filter_map(Mount::parse).collect();
        for (path, expected) in [
            ("/users/a/state", &["/mnt/with blank/state"][..]),
            ("/mnt/with blank/state", &["/users/a/state"]),
            ("/users/b/state", &["/srv/b"]),
            ("/srv/b/x", &["/users/b/state/x"]),
            ("/srv/c", &["/other/c"]),
            ("/users/a", &["/mnt/with blank"]),
            ("/users", &["/mnt/with blank", "/srv/b"]),
            ("/etc", &[]),
        ] {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(aliases(path.as_ref(), &mounts), expected, "{path}");
        }
    }
}
