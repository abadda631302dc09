"""What is shipped to run a broker by is well formed: the unit of systemd, and the build file of a container."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import repository
from tests.support.repository import ROOT

UNIT = "packaging/pybroker.service"
CONTAINER = "packaging/Containerfile"
INSTRUCTIONS = {
    "FROM", "LABEL", "RUN", "COPY", "ENV", "USER", "WORKDIR", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
    "ENTRYPOINT", "CMD",
}  # fmt: skip


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the build file with its words, continued lines joined."""
    text = re.sub(r"^#.*\n", "", repository.text(CONTAINER), flags=re.M).replace("\\\n", " ")
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.strip()]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    text = repository.text(UNIT)
    assert re.findall(r"^\[(\w+)\]$", text, re.M) == ["Unit", "Service", "Install"]
    assert all(re.fullmatch(r"[A-Z]\w+=.*", line) for line in text.splitlines() if line and line[0] not in "#[")
    verifier = shutil.which("systemd-analyze")
    if verifier is not None:
        unit = tmp_path / "pybroker.service"
        unit.write_text(text.replace("/usr/local/bin/pybroker", str(Path(sys.executable).with_name("pybroker"))))
        ran = subprocess.run(
            [verifier, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, "")


def test_the_container_is_built_of_what_there_is_and_runs_as_nobody_special() -> None:
    found = instructions()
    assert {name for name, _ in found} <= INSTRUCTIONS
    bases = [words for name, words in found if name == "FROM"]
    assert all(re.match(r"[\w./-]+:[\w.-]+(?: AS \w+)?$", base) for base in bases), "a base has a tag"
    last = [words for name, words in found if name == "USER"][-1]
    assert last.isdecimal()
    assert int(last) > 0
    copied = [words.split()[0] for name, words in found if name == "COPY" and not words.startswith("--from")]
    assert [source for source in copied if not source.startswith("dist/") and not (ROOT / source).exists()] == []
    for name in ("ENTRYPOINT", "CMD"):
        (words,) = [words for one, words in found if one == name]
        assert words.startswith("["), "a shell in between would keep signals from the broker"
    linter = shutil.which("hadolint")
    if linter is not None:
        ran = subprocess.run([linter, ROOT / CONTAINER], capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, ran.stdout
