"""`pybroker features`: the levels of features that a cluster agrees on, with kafka-features' options and output.

Owns the output, which is that of Kafka 4.3's tool. Must not know the protocol: it uses Admin, and works with any Kafka.
`feature_table` has the levels of each release and their requirements.

Not done: `describe --node-id`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_node_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.feature_table import LATEST, LEVELS, default_level, needs, parse_release, release_name
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.cli.kafka_exceptions import java_text, java_words
from pybroker.client.administration.quorum import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, FeatureUpdate
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError
from pybroker.metadata.features import METADATA_VERSION
from pybroker.metadata.metadata_versions import NAMES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection

DESCRIPTION = "Describe and change feature levels. Options and output are those of kafka-features."

JSON = {
    "describe": [
        {"feature": "string", "level": "integer", "lowest": "integer", "highest": "integer", "epoch": "integer"}
    ]
}
_SHORT = range(-(2**15), 2**15)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the subcommands."""
    add_node_options(parser, required=False)
    subcommands = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    describe = subcommands.add_parser(
        "describe", help="describe the finalized and the supported levels", allow_abbrev=False
    )
    add_json_option(describe)
    upgrade = subcommands.add_parser("upgrade", help="raise feature levels", allow_abbrev=False)
    downgrade = subcommands.add_parser("downgrade", help="lower feature levels", allow_abbrev=False)
    disable = subcommands.add_parser("disable", help="lower feature levels to 0", allow_abbrev=False)
    for parser_of in (upgrade, downgrade):
        parser_of.add_argument("--metadata", metavar="RELEASE", help="deprecated: the level of metadata.version")
        parser_of.add_argument("--release-version", metavar="RELEASE", help="the release whose feature levels are set")
        parser_of.add_argument(
            "--feature",
            action="append",
            metavar="FEATURE=LEVEL",
            help="a feature and its level, such as group.version=1",
        )
    disable.add_argument("--feature", action="append", metavar="FEATURE", help="a feature to disable")
    for parser_of in (downgrade, disable):
        parser_of.add_argument("--unsafe", action="store_true", help="also allow a downgrade that may lose metadata")
    for parser_of in (upgrade, downgrade, disable):
        parser_of.add_argument(
            "--dry-run", action="store_true", help="check whether the change is possible, without making it"
        )
    mapping = subcommands.add_parser(
        "version-mapping", help="print the feature levels of a release", allow_abbrev=False
    )
    mapping.add_argument("--release-version", metavar="RELEASE", default=LATEST, help="the release (%(default)s)")
    dependencies = subcommands.add_parser(
        "feature-dependencies", help="print the dependencies of a feature level", allow_abbrev=False
    )
    dependencies.add_argument("--feature", action="append", required=True, metavar="FEATURE=LEVEL", help="the level")


def run(arguments: argparse.Namespace) -> int:
    """Run a subcommand and return 0."""
    try:
        if arguments.subcommand == "version-mapping":
            _show_mapping(arguments.release_version)
        elif arguments.subcommand == "feature-dependencies":
            _show_dependencies(arguments.feature)
        elif arguments.bootstrap_server is None and arguments.bootstrap_controller is None:
            raise CommandError("You must specify either --bootstrap-controller or --bootstrap-server.")
        elif arguments.subcommand == "describe":
            _describe(arguments)
        else:
            _update(arguments, _updates(arguments))
    except (ClientError, ConfigError) as error:
        raise CommandError(java_text(error) if isinstance(error, ClientError) else str(error)) from None
    return 0


def _describe(arguments: argparse.Namespace) -> None:
    with open_admin(arguments) as admin:
        described = admin.describe_features()
    if arguments.json:
        print_json(
            [
                {"feature": name, "level": one.level, "lowest": one.lowest, "highest": one.highest, "epoch": one.epoch}
                for name, one in sorted(described.items())
            ]
        )
        return
    for name, feature in sorted(described.items()):
        lowest, highest, level = (_level_text(name, one) for one in (feature.lowest, feature.highest, feature.level))
        epoch = "-" if feature.epoch < 0 else str(feature.epoch)
        print(
            f"Feature: {name:<40}  SupportedMinVersion: {lowest:<15}  SupportedMaxVersion: {highest:<15}  "
            f"FinalizedVersionLevel: {level:<15}  Epoch: {epoch}"
        )


def _level_text(feature: str, level: int) -> str:
    if feature != METADATA_VERSION:
        return str(level)
    return NAMES.get(level, f"UNKNOWN {level}")


def _updates(arguments: argparse.Namespace) -> dict[str, FeatureUpdate]:
    """Return the requested levels. Raises CommandError."""
    kind = UPGRADE
    if arguments.subcommand != "upgrade":
        kind = UNSAFE_DOWNGRADE if arguments.unsafe else SAFE_DOWNGRADE
    features = arguments.feature or []
    if arguments.subcommand == "disable":
        return _each_once([(feature, 0) for feature in features], {}, kind)
    if arguments.release_version is not None:
        if arguments.metadata is not None or features:
            raise CommandError("Can not specify `release-version` with other feature flags.")
        return _of_release(arguments.release_version, kind)
    updates = {}
    if arguments.metadata is not None:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        updates[METADATA_VERSION] = FeatureUpdate(parse_release(arguments.metadata), kind)
    return _each_once(list(map(_parse, features)), updates, kind)


def _of_release(release: str, kind: int) -> dict[str, FeatureUpdate]:
    metadata_version = parse_release(release)
    updates = {METADATA_VERSION: FeatureUpdate(metadata_version, kind)}
    for feature in LEVELS:
        level = default_level(feature, metadata_version)
        # An upgrade to level 0 changes nothing.
        if level or kind != UPGRADE:
            updates[feature] = FeatureUpdate(level, kind)
    return updates


def _each_once(levels: list[tuple[str, int]], updates: dict[str, FeatureUpdate], kind: int) -> dict[str, FeatureUpdate]:
    for feature, level in levels:
        if feature in updates:
            raise CommandError(f"Feature {feature} was specified more than once.")
        updates[feature] = FeatureUpdate(level, kind)
    return updates


def _parse(text: str) -> tuple[str, int]:
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise CommandError(f"Can't parse feature=level string {text}: equals sign not found.")
    if not re.fullmatch(r"[+-]?[0-9]+", level, re.ASCII) or int(level) not in _SHORT:
        raise CommandError(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
    return name, int(level)


def _update(arguments: argparse.Namespace, updates: dict[str, FeatureUpdate]) -> None:
    verb, dry_run = arguments.subcommand, arguments.dry_run
    if not updates:
        raise CommandError(f"You must specify at least one feature to {verb}")
    with open_admin(arguments) as admin:
        if arguments.subcommand != "disable" and arguments.release_version is not None:
            updates = _known(updates, admin.describe_features())
        refusals = admin.update_features(updates, validate_only=dry_run)
    for name, refusal in sorted(refusals.items()):
        level = updates[name].level
        if refusal is not None:
            what = f"disable {name}" if verb == "disable" else f"{verb} {name} to {level}"
            print(f"{'Can not ' if dry_run else 'Could not '}{what}. {java_words(refusal)}")
        else:
            done = "disabled." if verb == "disable" else f"{verb}d to {level}."
            print(f"{name}{' can be ' if dry_run else ' was '}{done}")
    failed = sum(refusal is not None for refusal in refusals.values())
    if failed:
        raise CommandError(f"{failed} out of {len(updates)} operation(s) failed.")


def _known(updates: dict[str, FeatureUpdate], there: Collection[str]) -> dict[str, FeatureUpdate]:
    """Return the updates of a release without the features that the cluster lacks, and report these.

    The cluster would reject all updates because of one of these; Kafka's tool sends it.
    """
    for name in sorted(updates.keys() - set(there)):
        print(f"{name} is left out: the cluster does not have it.")
    return {name: update for name, update in updates.items() if name in there}


def _show_mapping(release: str) -> None:
    metadata_version = parse_release(release)
    print(f"{METADATA_VERSION}={metadata_version} ({release})")
    for feature in LEVELS:
        print(f"{feature}={default_level(feature, metadata_version)}")


def _show_dependencies(features: list[str]) -> None:
    for name, level in map(_parse, features):
        if name == METADATA_VERSION:
            if level not in NAMES:
                raise CommandError(f"Unknown metadata.version {level}")
            print(f"{name}={level} ({release_name(level)}) has no dependencies.")
            continue
        needed = needs(name, level)
        if needed is None:
            print(f"{name}={level} has no dependencies.")
        else:
            print(f"{name}={level} requires:\n    {METADATA_VERSION}={needed} ({release_name(needed)})")
