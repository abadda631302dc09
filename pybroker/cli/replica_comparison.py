"""Whether replicas of a partition have the same batches: what `pybroker replica-verification` finds.

Owns the comparison and its messages. Must not know where the batches come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pybroker.client.administration.log_dirs import BatchMark, ReplicaBatches


def differences(replicas: Mapping[str, ReplicaBatches], *, compacted: bool = False) -> Iterator[str]:
    """Yield the differences between replicas, by name, in the range that all of them have.

    In a compacted log each replica removes records independently, and a batch keeps its offset and leader epoch. So
    only these are compared, and neither checksums nor the set of batches.
    """
    first = max(one.first for one in replicas.values())
    end = min(one.end for one in replicas.values())
    marks = {
        name: {mark.base_offset: mark for mark in one.batches if mark.base_offset >= first and mark.last_offset < end}
        for name, one in replicas.items()
    }
    for offset in sorted({offset for found in marks.values() for offset in found}):
        there = {name: found[offset] for name, found in marks.items() if offset in found}
        if not compacted and len(there) < len(replicas):
            missing = ", ".join(name for name in replicas if name not in there)
            yield f"offset {offset}: no batch begins there at replica {missing}, one does at {', '.join(there)}"
        elif len({mark.leader_epoch if compacted else mark for mark in there.values()}) > 1:
            yield f"offset {offset}: " + ", ".join(f"replica {name} has {_text(mark)}" for name, mark in there.items())


def _text(mark: BatchMark) -> str:
    return f"last offset {mark.last_offset}, leader epoch {mark.leader_epoch}, checksum {mark.checksum}"
