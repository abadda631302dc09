"""Aborts transactions that exceed their timeout, and deletes expired transactional ids.

Owns which of them are due, and the size of one decision. Must not know when it is checked: a timer triggers the
expiration; the service triggers the aborts, since fenced producers may need new producer ids.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from pybroker.coordinator.transaction.errors import ProducerIdNeededError
from pybroker.coordinator.transaction.events import ExpireTransactionalIds, TimedOut
from pybroker.coordinator.transaction.producers import fence
from pybroker.coordinator.transaction.records import TransactionRecord
from pybroker.coordinator.transaction.states import TRANSACTION_LIFE as LIFE
from pybroker.coordinator.transaction.states import TransactionStep
from pybroker.machine.machine import Outcome, Timer

if TYPE_CHECKING:
    from pybroker.coordinator.transaction.events import AbortTimedOut
    from pybroker.coordinator.transaction.metadata import TransactionMetadata
    from pybroker.coordinator.transaction.state import TransactionView

MOST_AT_ONCE = 500
"""Maximum number in one decision: a few milliseconds."""
NEVER_MS = (1 << 31) - 1
"""The timeout of a transaction that an external coordinator decides about (KIP-939): it never expires."""
_MAY_EXPIRE = frozenset(state for state, step in LIFE.table if step is TransactionStep.EXPIRE)


def abort_timed_out(view: TransactionView, event: AbortTimedOut, now: int) -> Outcome[TransactionRecord, TimedOut]:
    """Abort transactions that exceed their timeout; those with exhausted epochs wait for a new producer id."""
    fresh = dict(event.fresh_ids)
    records: list[TransactionRecord] = []
    need_ids: list[str] = []
    due = [one for one, known in view.ongoing.items() if _is_overdue(known, now)]
    for transactional_id in islice(due, MOST_AT_ONCE):
        known = view.transactions[transactional_id]
        try:
            records.append(fence(view, transactional_id, known, now, fresh.get(transactional_id)))
        except ProducerIdNeededError:
            need_ids.append(transactional_id)
    aborted = [record.transactional_id for record in records]
    return Outcome(tuple(records), TimedOut(aborted, need_ids, len(due) > MOST_AT_ONCE))


def expire_ids(view: TransactionView, _event: ExpireTransactionalIds, now: int) -> Outcome[TransactionRecord, None]:
    """Delete expired transactional ids; repeated after the interval."""
    last = now - view.context.settings.id_expiration_ms
    due = (one for one, known in view.transactions.items() if known.state in _MAY_EXPIRE and known.updated_ms <= last)
    removed = list(islice(due, MOST_AT_ONCE + 1))
    records = tuple(TransactionRecord(one, None) for one in removed[:MOST_AT_ONCE])
    return Outcome(records, None, (_again(now) if len(removed) > MOST_AT_ONCE else expiration_timer(view, now),))


def expiration_timer(view: TransactionView, now: int) -> Timer:
    """Return the timer of the next check for expired transactional ids."""
    return Timer(_KEY, now + view.context.settings.expiration_interval_ms, ExpireTransactionalIds())


def _again(now: int) -> Timer:
    return Timer(_KEY, now, ExpireTransactionalIds())


def _is_overdue(known: TransactionMetadata, now: int) -> bool:
    return known.timeout_ms != NEVER_MS and known.started_ms + known.timeout_ms < now


_KEY = "expire transactional ids"
