//! Systems where nothing is ever confined by us: all processes are equal.

use std::os::fd::BorrowedFd;

use super::{Restrictions, RestrictionsError};

#[expect(clippy::unnecessary_wraps, reason = "other systems may not know")]
pub(super) fn own() -> Result<Restrictions, RestrictionsError> {
    Ok(Restrictions::default())
}

#[expect(clippy::unnecessary_wraps, reason = "other systems may not know")]
pub(super) fn of_peer(_socket: BorrowedFd<'_>) -> Result<Restrictions, RestrictionsError> {
    Ok(Restrictions::default())
}

#[expect(clippy::unnecessary_wraps, reason = "other systems may not know")]
pub(super) fn is_descendant(_socket: BorrowedFd<'_>) -> Result<bool, RestrictionsError> {
    Ok(false)
}

#[expect(clippy::unnecessary_wraps, reason = "other systems may not know")]
pub(super) fn shares_mounts(_socket: BorrowedFd<'_>) -> Result<bool, RestrictionsError> {
    Ok(true)
}
