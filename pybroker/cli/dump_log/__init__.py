"""`pybroker dump-log`: what is in the files of a log, with the options and output of kafka-dump-log."""

from pybroker.cli.dump_log.command import DESCRIPTION, add_arguments, run

__all__ = ["DESCRIPTION", "add_arguments", "run"]
