"""The Python blocks of the guide are test modules, and pass as they stand, in two processes at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.repository import ROOT

GUIDE = ROOT / "docs/guides/testing.md"
README = ROOT / "README.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_guides_blocks_pass_and_leave_nothing(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    programs = [block for block in BLOCK.findall(README.read_text()) if "def test_" not in block]
    assert len(programs) == 1, "tests/conformance/test_guides.py runs it"
    blocks = [*BLOCK.findall(GUIDE.read_text()), *BLOCK.findall(README.read_text())]
    blocks.remove(programs[0])
    assert len(blocks) >= 8
    for number, block in enumerate(blocks):
        assert "def test_" in block
        (tmp_path / f"test_block_{number}.py").write_text(block)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "-o",
        "asyncio_mode=auto",
        "-p",
        "no:cacheprovider",
        ".",
    ]
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [path for path in temporary.iterdir() if path.name.startswith("pybroker-")] == []
