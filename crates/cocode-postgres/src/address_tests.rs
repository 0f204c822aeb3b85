//! Addresses: what is understood, what is refused, and what people are shown.

use std::path::Path;

use tokio_postgres::config::SslMode;

use super::Address;

fn parsed(text: &str) -> Address {
    match Address::parse(text) {
        Ok(address) => address,
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn people_are_shown_an_address_without_its_password() {
    for (text, place) in [
        (
            "postgres://cocode:hunter2@db.example.com/cocode",
            "postgres://cocode@db.example.com:5432/cocode",
        ),
        (
            "postgresql://cocode:hunter2@[::1]:6000/cocode?application_name=hunter2",
            "postgres://cocode@[::1]:6000/cocode",
        ),
        (
            "postgres:///cocode?host=/run/postgresql&user=me&password=hunter2",
            "postgres://me@/run/postgresql:5432/cocode",
        ),
        (
            "postgres://me@%2Frun%2Fpostgresql/cocode",
            "postgres://me@/run/postgresql:5432/cocode",
        ),
        (
            "postgres://me@one,two/cocode",
            "postgres://me@one:5432,two:5432/cocode",
        ),
    ] {
        let address = parsed(text);
        assert_eq!(address.place, place, "{text}");
    }
}

#[test]
fn what_leaves_this_machine_is_encrypted_unless_somebody_says_otherwise() {
    for (text, mode) in [
        ("postgres://db.example.com/c", SslMode::Require),
        (
            "postgres://db.example.com/c?sslmode=disable",
            SslMode::Disable,
        ),
        (
            "postgres://db.example.com/c?sslmode=prefer",
            SslMode::Prefer,
        ),
        ("postgres://127.0.0.1/c", SslMode::Disable),
        ("postgres://localhost/c", SslMode::Disable),
        ("postgres://[::1]/c", SslMode::Disable),
        (
            "postgres://localhost/c?sslmode=verify-full",
            SslMode::Require,
        ),
        ("postgres://localhost,db.example.com/c", SslMode::Require),
        (
            "postgres://localhost/c?hostaddr=192.0.2.1",
            SslMode::Require,
        ),
        ("postgres:///c?host=/run/postgresql", SslMode::Disable),
        (
            "postgres:///c?host=/run/postgresql&sslmode=require",
            SslMode::Disable,
        ),
    ] {
        assert_eq!(parsed(text).config.get_ssl_mode(), mode, "{text}");
    }
}

#[test]
fn a_file_of_authorities_is_taken_and_the_other_parameters_are_kept() {
    let address = parsed(
        "postgres://u:p@h/c?sslrootcert=%2Fetc%2Fmy%20ca.pem&options=-c%20x=y&sslmode=require",
    );
    assert_eq!(
        address.ca_file.as_deref(),
        Some(Path::new("/etc/my ca.pem"))
    );
    let options = address.config.get_options().unwrap();
    assert!(
        options.starts_with("-c x=y -c statement_timeout="),
        "{options}"
    );
    assert_eq!(address.config.get_password(), Some(b"p".as_slice()));
}

#[test]
fn what_is_no_address_is_refused_without_being_repeated() {
    for text in [
        "hunter2",
        "mysql://u:hunter2@h/c",
        "postgres:///c?password=hunter2",
        "postgres://u:hunter2@h/c?sslmode=hunter2",
        "postgres://u:hunter2@h:hunter2/c",
        "postgres://u:hunter2@h/c?port=hunter2",
    ] {
        let Err(error) = Address::parse(text) else {
            panic!("{text} was taken");
        };
        let error = error.to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
