"""The broker settings that the state machine of the transaction coordinator uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig


class TransactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the transaction coordinator."""

    max_timeout_ms: int
    """The maximum transaction timeout of a producer."""
    id_expiration_ms: int
    """Time without a transaction after which a transactional id is deleted."""
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
