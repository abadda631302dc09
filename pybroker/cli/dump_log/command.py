"""Options of `pybroker dump-log`, and which file is shown how.

Owns option names, the order of the output and the exit status, which are those of Kafka 4.3's tool. Must not know the
file formats: `segments`, `indexes`, `producer_snapshot` and `decoders` do.

Not done: decoder classes other than Kafka's string, integer and long ones, as they are Java; the stack trace that
Kafka's tool prints behind an error; `--remote-log-metadata-decoder`, as there is no tiered storage; the records of
share groups in `__consumer_offsets`, which no coordinator here writes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.dump_log import indexes
from pybroker.cli.dump_log.decoders import DECODER_OPTIONS, STRING_DECODER, choose_decoder
from pybroker.cli.dump_log.errors import DamagedFileError
from pybroker.cli.dump_log.findings import Findings
from pybroker.cli.dump_log.producer_snapshot import dump_producer_snapshot
from pybroker.cli.dump_log.segments import SegmentOptions, dump_segment
from pybroker.cli.errors import CommandError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Print the contents of log and index files. Options and output are those of kafka-dump-log."

LARGEST_INT = 2**31 - 1
_LARGEST_MESSAGE = 5 * 1024 * 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--files", required=True, metavar="FILE1,FILE2", help="the log and index files to print")
    parser.add_argument("--print-data-log", action="store_true", help="print keys and values; any decoder implies it")
    parser.add_argument("--deep-iteration", action="store_true", help="print each record; --print-data-log implies it")
    parser.add_argument("--verify-index-only", action="store_true", help="check indexes without printing their entries")
    parser.add_argument("--index-sanity-check", action="store_true", help="check indexes as a start of the broker does")
    parser.add_argument(
        "--max-message-size", type=int, default=_LARGEST_MESSAGE, metavar="BYTES", help="the largest expected batch"
    )
    parser.add_argument(
        "--max-bytes", type=int, default=LARGEST_INT, metavar="BYTES", help="number of bytes to read of each .log file"
    )
    parser.add_argument("--skip-record-metadata", action="store_true", help="print only keys and values of records")
    for half in ("key", "value"):
        parser.add_argument(
            f"--{half}-decoder-class", nargs="?", const=STRING_DECODER, metavar="CLASS", help=f"how a {half} is read"
        )
    for option, what in DECODER_OPTIONS.items():
        parser.add_argument(f"--{option}", action="store_true", help=f"records are those of {what}")


def run(arguments: argparse.Namespace) -> int:
    """Print every file. Returns 1 when one is damaged."""
    findings = Findings()
    try:
        for name in arguments.files.split(","):
            print(f"Dumping {name}")
            _dump(Path(name), arguments, findings)
    except FileNotFoundError:
        sys.stdout.flush()
        print(name, file=sys.stderr)
        return 1
    except DamagedFileError as error:
        sys.stdout.flush()
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        sys.stdout.flush()
        raise CommandError(str(error)) from None
    sys.stdout.flush()
    for line in findings.lines():
        print(line, file=sys.stderr)
    return 0


def _dump(path: Path, arguments: argparse.Namespace, findings: Findings) -> None:
    suffix = path.suffix
    if suffix in (".log", ".checkpoint"):
        decoder = choose_decoder(arguments)
        printed = arguments.print_data_log or decoder.chosen
        options = SegmentOptions(
            is_deep=arguments.deep_iteration or printed,
            decode=decoder.decode if printed else None,
            skips_metadata=arguments.skip_record_metadata,
            max_bytes=arguments.max_bytes,
        )
        dump_segment(path, options, findings)
    elif suffix == ".index":
        options_of_index = indexes.IndexOptions(arguments.index_sanity_check, arguments.verify_index_only)
        indexes.dump_offset_index(path, options_of_index, arguments.max_message_size, findings)
    elif suffix == ".timeindex":
        options_of_index = indexes.IndexOptions(arguments.index_sanity_check, arguments.verify_index_only)
        indexes.dump_time_index(path, options_of_index, findings)
    elif suffix == ".snapshot":
        dump_producer_snapshot(path)
    elif suffix == ".txnindex":
        indexes.dump_transaction_index(path)
    else:
        sys.stdout.flush()
        print(f"Ignoring unknown file {path}", file=sys.stderr)
