"""A clone that is not built, in whose root Python runs: the sources are found before an installed pybroker."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pybroker


@pytest.mark.parametrize("words", [["-c", "import pybroker.client"], ["-m", "pybroker.cli.main", "topics", "--help"]])
def test_it_says_what_to_do(words: list[str], tmp_path: Path) -> None:
    package = tmp_path / "pybroker"
    shutil.copytree(Path(pybroker.__file__).parent, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    ran = subprocess.run([sys.executable, *words], cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: {package} has no extension module pybroker._native: this clone is not built. "
        "Run Python in another directory to import the installed pybroker, or build the clone with `make build`"
    )
