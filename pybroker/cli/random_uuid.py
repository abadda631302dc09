"""`pybroker random-uuid`: prints an id for a new cluster or directory, as `kafka-storage random-uuid` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.storage.log_dirs.meta_properties import random_id

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Print a random UUID."


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """Declare no option."""


def run(_arguments: argparse.Namespace) -> int:
    """Print the id and return 0."""
    print(random_id())
    return 0
