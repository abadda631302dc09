"""What the configuration says about transactions, in the machine's own terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig


class TransactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that decisions about transactions read."""

    max_timeout_ms: int
    """The longest transaction that a producer may ask for."""
    id_expiration_ms: int
    """A transactional id that was silent for so long is forgotten."""
    abort_interval_ms: int
    """Between two checks for transactions that exceed their timeout."""
    expiration_interval_ms: int
    """Between two checks for expired transactional ids."""


def build_settings(config: BrokerConfig) -> TransactionSettings:
    """Take from the broker's configuration what concerns transactions."""
    return TransactionSettings(
        max_timeout_ms=config.transaction_max_timeout_ms,
        id_expiration_ms=config.transactional_id_expiration_ms,
        abort_interval_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        expiration_interval_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
    )
