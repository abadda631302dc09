"""What `make audit` lets pass has a reason, and is about a crate that is built in."""

from __future__ import annotations

import re
import tomllib

from tests.support.repository import ROOT

LET_PASS = ROOT / "native" / "audit.toml"


def test_each_advisory_that_is_let_pass_names_its_crate_and_why() -> None:
    lines = LET_PASS.read_text().splitlines()
    ignored = tomllib.loads(LET_PASS.read_text())["advisories"]["ignore"]
    locked = {package["name"] for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    for advisory in ignored:
        assert re.fullmatch(r"RUSTSEC-\d{4}-\d{4}", advisory)
        at = next(number for number, line in enumerate(lines) if f'"{advisory}"' in line)
        reason: list[str] = []
        while lines[at - 1].strip().startswith("#"):
            at -= 1
            reason.insert(0, lines[at].strip(" #"))
        assert len(" ".join(reason)) > 60, f"{advisory} has no reason above it"
        crate = reason[0].split()[0]
        assert crate in locked, f"{advisory} is about {crate}, which is not built in any more: take the line out"
