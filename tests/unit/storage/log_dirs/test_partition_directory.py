from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.storage.log_dirs.partition_directory import bytes_from


@pytest.mark.parametrize(
    ("recovery_point", "expected"),
    [(-1, 111_111), (0, 111_111), (10, 111_111), (11, 111_110), (20, 111_110), (21, 111_100), (10**9, 100_000)],
)
def test_a_recovery_reads_from_the_segment_before_the_recovery_point_on(
    tmp_path: Path, recovery_point: int, expected: int
) -> None:
    for base, size in [(0, 1), (10, 10), (20, 1_100), (30, 10_000), (40, 100_000)]:
        (tmp_path / f"{base:020}.log").write_bytes(bytes(size))
        (tmp_path / f"{base:020}.index").write_bytes(bytes(7))
    assert bytes_from(tmp_path, recovery_point) == expected


def test_a_directory_that_cannot_be_read_counts_for_nothing(tmp_path: Path) -> None:
    assert bytes_from(tmp_path / "absent", 0) == 0
