from __future__ import annotations

import tomllib

import pytest

from pybroker.config.extras import PACKAGES, install_command
from tests.support import repository


def test_a_message_names_the_packages_of_the_extra() -> None:
    extras = tomllib.loads(repository.text("pyproject.toml"))["project"]["optional-dependencies"]
    own = {"bench", "spark"}  # pybroker's other distributions, which are installed from a clone
    assert {name: list(packages) for name, packages in PACKAGES.items()} == {
        name: packages for name, packages in extras.items() if name not in own
    }


def test_the_command_is_one_of_a_shell() -> None:
    assert install_command("cli") == "python -m pip install 'rich>=13' 'shtab>=1.8'"
    with pytest.raises(KeyError):
        install_command("colour")


def test_no_message_names_pybroker_on_an_index() -> None:
    """It is on none, so that such a command installs something else or nothing."""
    pages = [*repository.files_under("docs/guides", suffix=".md"), "README.md"]
    sources = [
        path for folder in ("pybroker", "bench", "spark") for path in repository.files_under(folder, suffix=".py")
    ]
    wrong = [
        path
        for path in [*pages, *sources]
        for line in repository.text(path).splitlines()
        if "install 'pybroker" in line or "install pybroker" in line
    ]
    assert wrong == ["pybroker/config/extras.py"], "the one that says so"
