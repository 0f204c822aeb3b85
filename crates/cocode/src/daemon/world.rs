//! Which part of the system a process sees. A front in a sandbox or a container is not served by a
//! daemon outside of it, nor the other way round: servers would see other files and networks than
//! they would if the front started them.

/// The namespaces of this process, where the system has such.
#[cfg(target_os = "linux")]
pub(crate) fn world() -> Vec<String> {
    const NAMESPACES: [&str; 4] = ["mnt", "net", "pid", "user"];
    let links = NAMESPACES.map(|name| std::fs::read_link(format!("/proc/self/ns/{name}")));
    let known = links.into_iter().filter_map(|link| match link {
        Ok(link) => Some(link.to_string_lossy().into_owned()),
        Err(error) => {
            tracing::debug!(%error, "a namespace of this process is unknown");
            None
        }
    });
    known.collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn world() -> Vec<String> {
    Vec::new()
}
