"""`pybroker metadata-shell`: the metadata of a cluster as a tree of files. The parts of the command, one file each."""

from pybroker.cli.metadata_shell.command import DESCRIPTION, add_arguments, run

__all__ = ["DESCRIPTION", "add_arguments", "run"]
