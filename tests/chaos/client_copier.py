"""The copier of `tests.chaos.copier` on our client: `ConsumeTransformProduce`, which aborts and reads again by itself.

What it cannot go on after ends the program, and the next one takes over its transactional id.

Usage: python -m tests.chaos.client_copier BOOTSTRAP GROUP INPUT OUTPUT TRANSACTIONAL_ID
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from pybroker.client import ConsumeTransformProduce, Output, Record

_AT_ONCE = 50


def main(bootstrap: str, group: str, source: str, target: str, transactional_id: str) -> None:
    """Copy until this process is ended."""

    def copy(records: Sequence[Record]) -> Iterable[Output]:
        for one in records:
            yield Output(target, (one.value or b"").upper(), one.key, one.partition)

    with ConsumeTransformProduce(
        bootstrap,
        [source],
        copy,
        group_id=group,
        transactional_id=transactional_id,
        consumer={"auto.offset.reset": "earliest", "max.poll.records": _AT_ONCE, "session.timeout.ms": 6000},
        producer={"transaction.timeout.ms": 10_000, "linger.ms": 2},
    ) as job:
        job.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
