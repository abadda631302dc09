"""The in-memory log of a partition of `__consumer_offsets`, with the appended batches and markers."""

from __future__ import annotations

from pybroker.storage.errors import BatchTooLargeError
from tests.support.batches import end_marker

HEADER = 61


class MemoryLog:
    """The in-memory log of a partition."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.max_batch_bytes = 1 << 20
        self.guards: list[int | None] = []
        self.refusal: Exception | None = None

    @property
    def high_watermark(self) -> int:
        return self.log_end_offset

    def has_completed(self, end_offset: int) -> bool:
        return end_offset <= self.log_end_offset

    def complete(self, _end_offset: int, _ticket: int) -> None:
        raise AssertionError("what is appended is settled at once")

    def append(self, batches: bytes, _now_ms: int) -> tuple[int, int]:
        first, cut = self.log_end_offset, []
        while batches:
            size = 12 + int.from_bytes(batches[8:12])
            cut.append(batches[:size])
            batches = batches[size:]
        if any(len(batch) > self.max_batch_bytes for batch in cut):
            raise BatchTooLargeError("a batch is too large")
        for batch in cut:
            self.batches.append(self.log_end_offset.to_bytes(8) + batch[8:])
            self.log_end_offset += int.from_bytes(batch[57:HEADER])
        return first, self.log_end_offset - 1

    def append_transactional(self, batches: bytes, now_ms: int, guard: int | None) -> tuple[int, int]:
        if self.refusal is not None:
            raise self.refusal
        self.guards.append(guard)
        return self.append(batches, now_ms)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        now_ms: int,
    ) -> tuple[int, int]:
        if self.refusal is not None:
            raise self.refusal
        return self.append(end_marker(producer_id, producer_epoch, coordinator_epoch, commit=commit), now_ms)

    def begin_verification(self, producer_id: int, producer_epoch: int, *, bumps_epoch: bool, now_ms: int) -> int:
        if self.refusal is not None:
            raise self.refusal
        return producer_id * 10 + producer_epoch + bumps_epoch

    def read(self, offset: int, max_bytes: int) -> bytes:
        found = b"".join(batch for batch in self.batches if int.from_bytes(batch[:8]) >= offset)
        return found[: max(max_bytes, 12 + int.from_bytes(found[8:12]))]
