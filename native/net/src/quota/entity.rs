//! Whose use of which quota it is, under the names that metrics show.
//!
//! A peer chooses its client id: one that is long is cut, and marked, so that no two entities have one name.

use super::{QuotaKind, QuotaLimit};

/// The longest name of a user or a client that is kept.
const NAME_BYTES: usize = 128;

/// Whose use it is, of which quota.
#[derive(Debug)]
pub struct Entity {
    /// What is limited.
    pub kind: QuotaKind,
    /// Empty where users share the quota.
    pub user: Box<str>,
    /// Empty where client ids share the quota.
    pub client_id: Box<str>,
}

impl Entity {
    /// The entity that shares a limit; `mark` is of this one alone.
    pub fn new(kind: QuotaKind, limit: &QuotaLimit, mark: u64) -> Self {
        let name = |name: &Option<String>| shown(name.as_deref().unwrap_or_default(), mark);
        Self { kind, user: name(&limit.user), client_id: name(&limit.client_id) }
    }
}

fn shown(name: &str, mark: u64) -> Box<str> {
    if name.len() <= NAME_BYTES {
        return name.into();
    }
    let end = (0..=NAME_BYTES).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    format!("{}...{mark:016x}", &name[..end]).into()
}
