//! The entity that a quota's usage belongs to, with the names for metrics.
//!
//! A client chooses its client id: a long id is cut, with a suffix that keeps the names of entities distinct.

use super::{QuotaKind, QuotaLimit};

/// The longest name of a user or a client that is kept.
const NAME_BYTES: usize = 128;

/// The entity of a usage, and the kind of its quota.
#[derive(Debug)]
pub struct Entity {
    /// The limited resource.
    pub kind: QuotaKind,
    /// Empty if users share the quota.
    pub user: Box<str>,
    /// Empty if client ids share the quota.
    pub client_id: Box<str>,
}

impl Entity {
    /// The entity that shares a limit; `mark` is unique to this entity.
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
