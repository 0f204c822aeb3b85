//! Tokens that are kept in memory, for as long as the process lives.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{
    MAX_TOKENS, TokenHash, TokenRecord, TokenStamp, TokenStore, TokenStoreError, newer_use,
};
use crate::Work;
use crate::principal::PrincipalName;

/// Keeps tokens in memory.
#[derive(Debug, Default)]
pub struct MemoryTokenStore {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    tokens: Vec<TokenRecord>,
    n_changes: u64,
}

impl MemoryTokenStore {
    /// Without any tokens.
    pub fn new() -> Self {
        Self::default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_now(&self, token: &TokenRecord) -> Result<(), TokenStoreError> {
        let mut kept = self.kept();
        kept.n_changes += 1;
        insert(&mut kept.tokens, token)
    }

    fn revoke_now(&self, name: &PrincipalName) -> Result<TokenRecord, TokenStoreError> {
        let mut kept = self.kept();
        kept.n_changes += 1;
        remove(&mut kept.tokens, name)
    }
}

/// Adds a token at its place among the others.
pub(super) fn insert(
    tokens: &mut Vec<TokenRecord>,
    token: &TokenRecord,
) -> Result<(), TokenStoreError> {
    if tokens.len() >= MAX_TOKENS {
        return Err(TokenStoreError::TooMany);
    }
    let is_taken = |other: &TokenRecord| other.name == token.name || other.hash == token.hash;
    if tokens.iter().any(is_taken) {
        return Err(TokenStoreError::Taken(token.name.clone()));
    }
    let place = tokens.partition_point(|other| other.name < token.name);
    tokens.insert(place, token.clone());
    Ok(())
}

pub(super) fn remove(
    tokens: &mut Vec<TokenRecord>,
    name: &PrincipalName,
) -> Result<TokenRecord, TokenStoreError> {
    match tokens.iter().position(|token| token.name == *name) {
        Some(index) => Ok(tokens.remove(index)),
        None => Err(TokenStoreError::Unknown(name.clone())),
    }
}

impl TokenStore for MemoryTokenStore {
    fn add<'a>(&'a self, token: &'a TokenRecord) -> Work<'a, Result<(), TokenStoreError>> {
        Box::pin(async move { self.add_now(token) })
    }

    fn list(&self) -> Work<'_, Result<Vec<TokenRecord>, TokenStoreError>> {
        Box::pin(async move { Ok(self.kept().tokens.clone()) })
    }

    fn revoke<'a>(
        &'a self,
        name: &'a PrincipalName,
    ) -> Work<'a, Result<TokenRecord, TokenStoreError>> {
        Box::pin(async move { self.revoke_now(name) })
    }

    fn note_use<'a>(
        &'a self,
        used: &'a [(TokenHash, SystemTime)],
    ) -> Work<'a, Result<(), TokenStoreError>> {
        Box::pin(async move {
            for token in &mut self.kept().tokens {
                token.last_used = newer_use(token, used);
            }
            Ok(())
        })
    }

    fn stamp(&self) -> Work<'_, Result<TokenStamp, TokenStoreError>> {
        Box::pin(async move { Ok(TokenStamp::new(self.kept().n_changes.to_be_bytes())) })
    }
}
