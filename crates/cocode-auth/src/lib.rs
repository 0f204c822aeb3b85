//! Secrets and credentials of cocode, the MCP runtime.
//!
//! Configuration names secrets and does not hold them. [`References`] turns `keyring:NAME` and
//! `cmd:COMMAND LINE` into a [`Secret`] when a server is contacted. [`SecretStore`] keeps them in
//! the keyring of the system, or in a private file where there is none.
//!
//! [`oauth`] signs in at remote servers and keeps their tokens; [`HeadersHelper`] asks a command of the
//! user for headers. Both are [`cocode_wire::Credentials`] for links.
//!
//! Nothing here reads the environment, prints, or writes a secret anywhere but into the store.
//! `docs/decisions/0006-secret-stores.md` says why the stores are the way they are.

mod command;
mod file;
mod headers_helper;
mod keyring;
pub mod oauth;
mod reference;
mod resolve;
mod secret;
mod store;
mod turn;

pub use command::{CommandError, CommandSettings};
pub use file::FileError;
pub use headers_helper::HeadersHelper;
pub use keyring::{KeyringError, session_bus_address};
pub use reference::{InvalidReference, Reference};
pub use resolve::{References, SecretError};
pub use secret::{InvalidSecretName, Secret, SecretName};
pub use store::{
    MAX_SECRET_BYTES, Place, SecretStore, StoreChoice, StoreDescription, StoreError, StoreOptions,
    StoredSecret,
};
