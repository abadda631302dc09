"""The configuration of transactions, as the machine uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig


class TransactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration that decisions about transactions read."""

    max_timeout_ms: int
    """The maximum transaction timeout of a producer."""
    id_expiration_ms: int
    """A transactional id without a transaction for this long is deleted."""
    abort_interval_ms: int
    """Interval of the checks for transactions that exceed their timeout."""
    expiration_interval_ms: int
    """Interval of the checks for expired transactional ids."""


def build_settings(config: BrokerConfig) -> TransactionSettings:
    """Return the transaction settings of the broker's configuration."""
    return TransactionSettings(
        max_timeout_ms=config.transaction_max_timeout_ms,
        id_expiration_ms=config.transactional_id_expiration_ms,
        abort_interval_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        expiration_interval_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
    )
