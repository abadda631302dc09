"""When `KTable.suppress` forwards updates, and how large its buffer can be (KIP-328).

table.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
table.suppress(Suppressed.until_time_limit(5_000, BufferConfig.max_records(1_000)))
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pybroker.streams.windows import Duration, milliseconds

NO_LIMIT = (1 << 63) - 1
"""The limit of an unbounded buffer (`Long.MAX_VALUE`), in records or bytes."""


class BufferConfig(msgspec.Struct, frozen=True):
    """The limits of a buffer, and its behaviour when it is full (`Suppressed.BufferConfig`).

    A full buffer either forwards its oldest records early, or stops the program with an error.
    """

    record_limit: int = NO_LIMIT
    byte_limit: int = NO_LIMIT
    emits_early: bool = False
    logging: bool = True
    log_config: Mapping[str, str] = {}

    @classmethod
    def max_records(cls, limit: int) -> BufferConfig:
        """Return a buffer of at most `limit` keys, which forwards records early when it is full."""
        return cls(record_limit=limit, emits_early=True)

    @classmethod
    def max_bytes(cls, limit: int) -> BufferConfig:
        """Return a buffer of at most `limit` bytes, which forwards records early when it is full."""
        return cls(byte_limit=limit, emits_early=True)

    @classmethod
    def unbounded(cls) -> BufferConfig:
        """Return a buffer without limits."""
        return cls()

    def with_max_records(self, limit: int) -> BufferConfig:
        """Return this buffer with another limit of keys."""
        return msgspec.structs.replace(self, record_limit=limit)

    def with_max_bytes(self, limit: int) -> BufferConfig:
        """Return this buffer with another limit of bytes."""
        return msgspec.structs.replace(self, byte_limit=limit)

    def with_no_bound(self) -> BufferConfig:
        """Return this buffer without limits."""
        return msgspec.structs.replace(self, record_limit=NO_LIMIT, byte_limit=NO_LIMIT, emits_early=False)

    def shut_down_when_full(self) -> BufferConfig:
        """Return this buffer with an error when it is full."""
        return msgspec.structs.replace(self, emits_early=False)

    def emit_early_when_full(self) -> BufferConfig:
        """Return this buffer with the oldest records forwarded when it is full."""
        return msgspec.structs.replace(self, emits_early=True)

    def with_logging_disabled(self) -> BufferConfig:
        """Return this buffer without a changelog. Its records are lost when the task moves."""
        return msgspec.structs.replace(self, logging=False, log_config={})

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> BufferConfig:
        """Return this buffer with a changelog, and configuration of the changelog topic."""
        return msgspec.structs.replace(self, logging=True, log_config=dict(config or {}))


class Suppressed(msgspec.Struct, frozen=True):
    """The condition that `KTable.suppress` waits for (`Suppressed`)."""

    buffer: BufferConfig
    wait_ms: int | None
    """How long a record stays in the buffer, in milliseconds of stream time.

    None stands for the grace of the windows of the table. The DSL replaces it with `with_grace`.
    """
    until_close: bool
    """Whether a record waits from the end of its window on. Otherwise it waits from its own timestamp on."""
    name: str | None = None

    @classmethod
    def until_window_closes(cls, buffer: BufferConfig) -> Suppressed:
        """Forward only the final result of each window, when the window closes.

        Raises:
            ValueError: the buffer forwards records early, and these would not be final.
        """
        if buffer.emits_early:
            raise ValueError(
                "invalid buffer that emits early for until_window_closes: expected BufferConfig.unbounded() or "
                "shut_down_when_full()"
            )
        return cls(buffer, None, True)

    @classmethod
    def until_time_limit(cls, wait: Duration, buffer: BufferConfig) -> Suppressed:
        """Forward the latest update of a key once `wait` has passed since the first update in the buffer."""
        return cls(buffer, milliseconds("time limit", wait), False)

    def with_name(self, name: str) -> Suppressed:
        """Return this condition with a name for the node and its buffer."""
        return msgspec.structs.replace(self, name=name)

    def with_grace(self, grace_ms: int) -> Suppressed:
        """Return this condition with the grace of the windows in milliseconds, if it waits for windows to close."""
        return msgspec.structs.replace(self, wait_ms=grace_ms) if self.wait_ms is None else self
