"""`pybroker metadata-shell`: options, and the loop that reads lines; one command and out where one is given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.cli.metadata_shell.image_tree import image_tree, local_tree
from pybroker.cli.metadata_shell.shell import Shell
from pybroker.cli.metadata_shell.source import read_source
from pybroker.cli.metadata_shell.zookeeper_tree import zookeeper_tree

if TYPE_CHECKING:
    import argparse

DESCRIPTION = (
    "Browse the metadata of a cluster like a file system: /image as in kafka-metadata-shell, and "
    "/brokers, /config, /admin and so on, as Kafka kept them in ZooKeeper."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--snapshot", "-s", type=Path, metavar="FILE", help="a .checkpoint, or a .log of the metadata log"
    )
    source.add_argument(
        "--directory", "-d", type=Path, metavar="DIR", help="a data directory, or the directory of the metadata log"
    )
    parser.add_argument(
        "command", nargs="*", help="a command to run: ls, cat, cd, pwd, find, tree (default: an interactive shell)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the given command, or the commands of standard input until its end, and return 0."""
    image = read_source(arguments.snapshot or arguments.directory)
    shell = Shell({"image": image_tree(image), "local": local_tree(), **zookeeper_tree(image)})
    if arguments.command:
        shell.run(arguments.command)
        return 0
    while True:
        print(">> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line or line.strip() in ("exit", "quit"):
            return 0
        try:
            shell.run_line(line)
        except CommandError as error:
            print(error)
