"""`pybroker doctor`: checks the settings and the machine of a broker before it starts, or while it runs.

addresses     ports, and advertised addresses as clients use them
directories   log directories, disk space, inodes
system        descriptors, the clock, the kernel's settings
machine       reading of kernel files
finding       a line of the output

Owns options, the order of the checks, and the exit status. Must change neither the machine nor a broker.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.colours import paint
from pybroker.cli.doctor.addresses import check_addresses
from pybroker.cli.doctor.directories import check_directories, count_logs, running_broker
from pybroker.cli.doctor.finding import FAIL, OK, WARN, Finding
from pybroker.cli.doctor.machine import Machine
from pybroker.cli.doctor.system import check_clock, check_descriptors, check_kernel
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.config.errors import ConfigError
from pybroker.config.faults import find_faults
from pybroker.config.properties import parse_overrides, read_properties

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

DESCRIPTION = (
    "Check the settings and this machine before a broker starts: ports, addresses, file descriptors, disks, clock, "
    "kernel. Each line begins with ok, warn or fail; the last two include a fix. The exit status is 1 if a check fails."
)
JSON = {
    "": {
        "healthy": "boolean",
        "findings": [{"state": "string", "check": "string", "words": "string", "advice": "string"}],
    }
}
_COLOURS = {OK: "green", WARN: "yellow", FAIL: "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="the server.properties of the broker")
    parser.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="a setting that overrides the file"
    )
    parser.add_argument("--problems", action="store_true", help="print only warnings and failures")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run all checks, and return 1 where a failure prevents a broker from starting or serving."""
    try:
        texts = {} if arguments.config is None else read_properties(arguments.config)
        texts.update(parse_overrides(arguments.override))
    except ConfigError as error:
        raise CommandError(str(error)) from None
    findings = list(examine(texts, Machine()))
    failed = any(one.state == FAIL for one in findings)
    shown = [one for one in findings if not arguments.problems or one.state != OK]
    if arguments.json:
        print_json({"healthy": not failed, "findings": [one._asdict() for one in shown]})
        return int(failed)
    width = max((len(one.check) for one in shown), default=0)
    for one in shown:
        print(f"{paint(f'{one.state:<4}', _COLOURS[one.state])}  {one.check:<{width}}  {one.words}")
        if one.advice:
            print(f"{'':<{width + 8}}{one.advice}")
    return int(failed)


def examine(texts: dict[str, str], machine: Machine) -> Iterator[Finding]:
    """Yield the findings, those of the settings first. The other checks require valid settings."""
    faults, config = find_faults(texts)
    for fault in faults:
        yield Finding(FAIL, "settings", str(fault), "correct the setting; `pybroker config validate` reports its line")
    if faults or config is None:
        return
    yield Finding(OK, "settings", f"node {config.node_id}, {','.join(config.process_roles)}")
    pid, logs = running_broker(config), count_logs(config)
    yield from check_addresses(config, machine, pid)
    yield check_descriptors(config, logs)
    yield from check_directories(config, machine, pid)
    yield from check_clock(config, machine)
    yield from check_kernel(config, machine, logs)
