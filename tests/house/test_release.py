"""A release has one version everywhere, and a section of the changelog."""

from __future__ import annotations

import re
import tomllib

from changes import collate
from tests.support import repository

DISTRIBUTIONS = ("pyproject.toml", "bench/pyproject.toml", "spark/pyproject.toml")


def test_all_distributions_and_crates_have_one_version() -> None:
    versions = {tomllib.loads(repository.text(path))["project"]["version"] for path in DISTRIBUTIONS}
    versions.add(tomllib.loads(repository.text("Cargo.toml"))["workspace"]["package"]["version"])
    assert len(versions) == 1


def test_the_newest_release_is_that_version() -> None:
    _head, mark, releases = repository.text("CHANGELOG.md").partition(collate.MARK)
    assert mark, f"`make changelog` writes below this line: {collate.MARK}"
    newest = re.search(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", releases, re.M)
    version = tomllib.loads(repository.text("pyproject.toml"))["project"]["version"]
    assert newest is not None
    assert newest[1] == version
