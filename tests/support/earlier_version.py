"""The earliest version from which upgrades are tested. Its wheel is built once, from a commit of this repository.

Owns the commit, the builds below `target/upgrade`, and the environment of the installed wheel. Must not know how tests
use the program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from pybench.checkout import building
from pybench.wheel import install_alone
from tests.support.repository import ROOT

FIRST_WITH_CLUSTERS = "native: the one accepted layout"
"""The subject of the first commit with working clusters. A rewritten history keeps subjects, but not ids."""
_BUILD = ROOT / "target" / "upgrade"


def earlier_program() -> Path:
    """Return the `pybroker` program of the first version with clusters, in an environment of its own.

    If the wheel is missing, builds it if PYBROKER_UPGRADE is set (`make upgrade`), which takes minutes. Otherwise skips
    the test.
    """
    wheels = sorted((_BUILD / "dist").glob("*.whl"))
    if not wheels and not os.environ.get("PYBROKER_UPGRADE"):
        pytest.skip("the wheel of the first version with clusters is not built: run `make upgrade`")
    with building():
        if not wheels:
            wheels = [_build(_commit())]
        environment = _BUILD / "environment"
        program = environment / "bin" / "pybroker"
        if not program.exists():
            shutil.rmtree(environment, ignore_errors=True)
            install_alone(wheels[0], environment)
    return program


def _commit() -> str:
    words = ["git", "log", "--format=%H %s"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if subject == FIRST_WITH_CLUSTERS:
            return commit
    pytest.fail(f"the history of this repository has no commit {FIRST_WITH_CLUSTERS!r}: fetch all of it")


def _build(commit: str) -> Path:
    """Build the wheel of a commit. Its sources and build outputs are separate from those of this version."""
    source, dist = _BUILD / "source", _BUILD / "dist"
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    shutil.rmtree(source, ignore_errors=True)
    with tarfile.open(fileobj=BytesIO(archive)) as packed:
        packed.extractall(source, filter="data")
    maturin = str(Path(sys.executable).with_name("maturin"))
    words = [maturin, "build", "--release", "--quiet", "--compatibility", "pypi", "--interpreter", sys.executable]
    words += ["--target-dir", str(_BUILD / "objects"), "--out", str(dist)]
    done = subprocess.run(words, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    (wheel,) = dist.glob("*.whl")
    return wheel
