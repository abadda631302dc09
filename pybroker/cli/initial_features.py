"""The levels of features that a cluster begins with, from `--release-version` and `--feature`.

Owns the defaults of a release and the errors, which are Kafka's messages. Must not know directories.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.cli.feature_table import default_level
from pybroker.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    INITIAL_LEVELS,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from pybroker.metadata.metadata_versions import NAMES, level_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_NEEDS = {ELIGIBLE_LEADER_REPLICAS_VERSION: 23}
"""The lowest metadata.version of a feature's level 1."""
_SHORT = range(-(2**15), 2**15)
_DYNAMIC_OPTIONS = "--standalone, --initial-controllers, or --no-initial-controllers"


def plan_levels(release: str | None, features: Sequence[str], *, is_dynamic: bool) -> dict[str, int]:
    """Return the level of every feature, metadata.version first. Raises CommandError.

    `is_dynamic`: the voters are in the log and not in the settings, which requires kraft.version 1.
    """
    given = _parse_features(features)
    for name in given:
        if name not in SUPPORTED_FEATURES:
            known = ", ".join(sorted(SUPPORTED_FEATURES.keys() - {METADATA_VERSION}))
            raise CommandError(f"Unsupported feature: {name}. Supported features are: {known}")
    is_default = release is None and METADATA_VERSION not in given
    metadata_version = _metadata_version(release, given.pop(METADATA_VERSION, None))
    levels = {METADATA_VERSION: metadata_version}
    for name in sorted(SUPPORTED_FEATURES.keys() - {METADATA_VERSION}):
        if name == KRAFT_VERSION:
            levels[name] = _kraft_version(given.get(name), is_dynamic=is_dynamic)
        else:
            initial = INITIAL_LEVELS.get(name, 0) if is_default else default_level(name, metadata_version)
            levels[name] = given.get(name, initial)
            _check(name, levels[name], metadata_version)
    return levels


def recorded(levels: Mapping[str, int]) -> dict[str, int]:
    """Return the levels for `bootstrap.checkpoint`, except kraft.version (in the voters' snapshot) and level 0."""
    return {name: level for name, level in levels.items() if level and name != KRAFT_VERSION}


def _parse_features(texts: Sequence[str]) -> dict[str, int]:
    features = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not equals:
            raise CommandError(f"Can't parse feature=level string {text}: equals sign not found.")
        if not re.fullmatch(r"[+-]?[0-9]+", level, re.ASCII) or int(level) not in _SHORT:
            raise CommandError(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
        features[name] = int(level)
    return features


def _metadata_version(release: str | None, level: int | None) -> int:
    lowest, highest = SUPPORTED_FEATURES[METADATA_VERSION]
    if release is not None and level is not None:
        raise CommandError(f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity.")
    if level is not None:
        if not lowest <= level <= highest:
            raise CommandError(
                f"No MetadataVersion with feature level {level}. Valid feature levels are from {lowest} to {highest}."
            )
        return level
    if release is None:
        return INITIAL_LEVELS[METADATA_VERSION]
    found = level_of(release)
    if found is None or not lowest <= found <= highest:
        known = ", ".join(NAMES[level] for level in range(lowest, highest + 1))
        raise CommandError(f"Unknown metadata.version '{release}'. Supported metadata.version are: {known}")
    return found


def _kraft_version(level: int | None, *, is_dynamic: bool) -> int:
    if level is None:
        return int(is_dynamic)
    if level not in (0, 1):
        raise CommandError(f"No feature:{KRAFT_VERSION} with feature level {level}")
    if level == 0 and is_dynamic:
        raise CommandError(
            f"Cannot set {KRAFT_VERSION} to 0 if controller.quorum.voters is empty and one of the flags "
            f"{_DYNAMIC_OPTIONS} is used. For dynamic controllers support, try removing the --feature flag for "
            f"{KRAFT_VERSION}."
        )
    if level == 1 and not is_dynamic:
        raise CommandError(
            f"Cannot set {KRAFT_VERSION} to 1 unless controller.quorum.voters is empty and one of the flags "
            f"{_DYNAMIC_OPTIONS} is used. For dynamic controllers support, try using one of {_DYNAMIC_OPTIONS} and "
            "removing controller.quorum.voters."
        )
    return level


def _check(name: str, level: int, metadata_version: int) -> None:
    lowest, highest = SUPPORTED_FEATURES[name]
    if not lowest <= level <= highest:
        raise CommandError(f"No feature:{name} with feature level {level}")
    needed = _NEEDS.get(name, 0)
    if level and metadata_version < needed:
        raise CommandError(
            f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {needed}"
        )
