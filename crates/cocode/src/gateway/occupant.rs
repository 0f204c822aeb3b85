//! Who listens at a port that is taken, as far as the system tells.

use std::net::SocketAddr;

/// Another process that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Occupant {
    /// The name of its program.
    pub(crate) program: String,
    pub(crate) pid: u32,
}

/// Who listens at the port of this address. Only processes of the same user can be found.
#[cfg(target_os = "linux")]
pub(crate) fn of(address: SocketAddr) -> Option<Occupant> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok());
    let sockets: Vec<String> = tables
        .flat_map(|table| listening(&table, address.port()))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    std::fs::read_dir("/proc")
        .ok()?
        .flatten()
        .find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let mut open = std::fs::read_dir(entry.path().join("fd")).ok()?.flatten();
            let is_its = open.any(|descriptor| {
                let target = std::fs::read_link(descriptor.path()).unwrap_or_default();
                sockets
                    .iter()
                    .any(|socket| target.as_os_str() == socket.as_str())
            });
            let program = std::fs::read_to_string(entry.path().join("comm")).ok()?;
            let program = program.trim_end().to_owned();
            is_its.then_some(Occupant { program, pid })
        })
}

/// Elsewhere the system does not tell without asking another program.
#[cfg(not(target_os = "linux"))]
pub(crate) fn of(_address: SocketAddr) -> Option<Occupant> {
    None
}

/// The numbers of the sockets in a table of the kernel that listen at a port.
#[cfg(target_os = "linux")]
fn listening(table: &str, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    let lines = table.lines().skip(1);
    let found = lines.filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (local, state) = (columns.get(1)?, columns.get(3)?);
        let inode = columns.get(9)?.parse().ok()?;
        (local.ends_with(&suffix) && *state == LISTEN).then_some(inode)
    });
    found.collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::{listening, of};

    #[test]
    fn our_own_socket_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = of(listener.local_addr().unwrap()).unwrap();
        assert_eq!(found.pid, std::process::id());
        assert!(!found.program.is_empty());
    }

    #[test]
    fn only_sockets_that_listen_at_the_port_count() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1E61 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1
   1: 0100007F:1E61 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1
   2: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4713 1
";
        assert_eq!(listening(table, 7777), [4711]);
        assert_eq!(listening(table, 1), [0u64; 0]);
    }
}
