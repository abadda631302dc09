"""Claims about the audit at scale: what it damages is what there is to be found."""

from __future__ import annotations

import os

import numpy as np
import pytest

from pybench.large_audit import Damage
from pybench.process import descendants, peak_resident_bytes, program, resident_bytes
from pybroker_spark.audit import intervals
from pybroker_spark.audit.sequences import Sequences


@pytest.mark.parametrize("blocks", [300, 22, 122, 108])
def test_the_damage_is_counted_as_the_audit_counts_it(blocks: int) -> None:
    damage = Damage(blocks, size=10)
    sequences = Sequences.of(np.concatenate([np.arange(block * 10, block * 10 + 10) for block in damage.order()]))
    truth = damage.truth()
    assert truth == {
        "records": sequences.records,
        "lost": intervals.size(sequences.lost()),
        "duplicated": sequences.duplicated,
        "reordered": sequences.reordered,
    }
    assert truth["lost"]
    assert truth["duplicated"]


def test_memory_is_read_of_every_process_below_one() -> None:
    assert os.getpid() in descendants(os.getppid())
    resident = resident_bytes(os.getpid())
    assert peak_resident_bytes(os.getpid()) >= resident // 2 > 0
    assert program(os.getpid())
    assert (peak_resident_bytes(2**22 + 1), program(2**22 + 1)) == (0, "")
