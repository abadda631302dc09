"""`pybroker storage-info`: shows whose a node's log directories are, as `kafka-storage info` does.

Owns the lines. Only reads, also beside a running broker.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.storage.errors import ForeignDirectoryError
from pybroker.storage.log_dirs.meta_properties import FILE_NAME, MetaProperties, read_meta_properties

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

DESCRIPTION = "Get information about the log directories of a node."


JSON = {
    "": {
        "directories": ["string"],
        "clusterId": "string|null",
        "nodeId": "integer|null",
        "problems": ["string"],
    }
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--config", "-c", type=Path, required=True, metavar="FILE", help="the server.properties of the node"
    )
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the directories, and return 1 where there are problems."""
    try:
        config = BrokerConfig.from_properties(arguments.config)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    found: list[Path] = []
    problems: list[str] = []
    first: MetaProperties | None = None
    for path in sorted({*config.log_directories, config.metadata_directory}):
        if not path.is_dir():
            problems.append(f"{path} is not a directory" if path.exists() else f"{path} does not exist")
            continue
        found.append(path)
        try:
            meta = read_meta_properties(path)
        except (ForeignDirectoryError, OSError) as error:
            problems.append(f"Error loading {path / FILE_NAME}: {error}")
            continue
        if meta is None:
            problems.append(f"{path} is not formatted.")
        elif first is None:
            first = meta
        elif meta.cluster_id != first.cluster_id:
            problems.append("Mismatched cluster IDs between storage directories.")
        elif meta.node_id != first.node_id:
            problems.append("Mismatched node IDs between storage directories.")
    if arguments.json:
        print_json(
            {
                "directories": [str(path) for path in found],
                "clusterId": None if first is None else first.cluster_id,
                "nodeId": None if first is None else first.node_id,
                "problems": problems,
            }
        )
        return 1 if problems else 0
    _print_block("Found log directory:", "Found log directories:", found)
    if first is not None:
        print(
            f"Found metadata: {{cluster.id={first.cluster_id}, directory.id={first.directory_id}, "
            f"node.id={first.node_id}, version=1}}\n"
        )
    _print_block("Found problem:", "Found problems:", problems)
    return 1 if problems else 0


def _print_block(singular: str, plural: str, items: Sequence[object]) -> None:
    if items:
        print(singular if len(items) == 1 else plural)
        for item in items:
            print(f"  {item}")
        print()
