from __future__ import annotations

import pytest

from pybroker.cli.metadata_shell.image_tree import double_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1024.0, "1024.0"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (123456789.25, "1.2345678925E8"),
        (0.001, "0.001"),
        (0.00025, "2.5E-4"),
        (-1.5e300, "-1.5E300"),
        (float("inf"), "Infinity"),
    ],
)
def test_numbers_are_written_as_java_writes_doubles(value: float, text: str) -> None:
    assert double_text(value) == text
