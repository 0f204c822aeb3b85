//! Whether a command that failed reads as if the sandbox had been in its way. Only the kernel and the command
//! know for sure, and the command says it in its own words.

/// What programs print when the system does not let them write, in small letters.
const OF_FILES: &[&str] = &[
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "access denied",
    "eacces",
    "eperm",
    "erofs",
    "permissionerror",
    "not writable",
    "invalid cross-device link",
    "exdev",
    "errno 13",
    "os error 13",
];

/// What they print when there is no network for them, besides.
const OF_NETWORK: &[&str] = &[
    "could not resolve",
    "couldn't resolve",
    "cannot resolve",
    "unable to resolve",
    "name resolution",
    "name or service not known",
    "enotfound",
    "eai_again",
    "failed to connect",
    "could not connect",
    "couldn't connect",
    "unable to connect",
    "cannot connect",
    "network is unreachable",
    "network unreachable",
    "dns error",
    "error sending request",
];

/// Looks for such words. `has_network` says whether the command was let to the network.
pub(super) fn is_likely(output: &str, has_network: bool) -> bool {
    let output = output.to_ascii_lowercase();
    let of_network = if has_network { &[] } else { OF_NETWORK };
    let mut words = OF_FILES.iter().chain(of_network);
    words.any(|words| output.contains(words))
}

#[cfg(test)]
mod tests {
    use super::is_likely;

    #[test]
    fn words_of_the_system_and_of_programs_are_known() {
        for output in [
            "sh: 1: cannot create /etc/x: Permission denied",
            "touch: cannot touch '/x': Read-only file system",
            "Error: EACCES: permission denied, mkdir '/srv/.npm'",
            "PermissionError: [Errno 13]",
            "mv: inter-device move failed: Invalid cross-device link",
        ] {
            assert!(is_likely(output, true), "{output}");
        }
    }

    #[test]
    fn words_about_the_network_count_where_there_is_none() {
        for output in [
            "curl: (6) Could not resolve host: example.com",
            "ssh: Temporary failure in name resolution",
            "getaddrinfo EAI_AGAIN example.com",
        ] {
            assert!(is_likely(output, false), "{output}");
            assert!(!is_likely(output, true), "{output}");
        }
    }

    #[test]
    fn other_failures_are_not_blamed_on_the_sandbox() {
        for output in ["", "error[E0308]: mismatched types", "2 tests failed"] {
            assert!(!is_likely(output, false), "{output}");
        }
    }
}
