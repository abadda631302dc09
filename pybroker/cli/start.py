"""`pybroker start`: runs a broker in the foreground until SIGTERM, SIGINT or SIGHUP.

Owns options, logging to stderr, the ready line on stdout, and the reaction to signals. Must not know how a broker is
put together.

The ready line is the only thing on stdout: `pybroker 0.1.0 ready: PLAINTEXT://127.0.0.1:9092 data /tmp/pybroker-logs`.
A second SIGTERM or SIGINT ends the process at once, as after a crash. A second SIGHUP does not: where a terminal
closes, its shell and the kernel each send one. Under nohup, which has SIGHUP ignored, a broker goes on without it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from pybroker import __version__
from pybroker.cli.errors import CommandError
from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.config.properties import parse_overrides
from pybroker.config.roles import heartbeat_warning
from pybroker.config.topic import broker_suggestion
from pybroker.net.allocator import fix_thresholds
from pybroker.net.descriptors import raise_limit
from pybroker.node import Node, NodeError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Run a broker in the foreground. Without options it listens on port 9092 with Kafka's defaults."

_YOUNG_OBJECTS = 10_000
"""Made between two looks for garbage among the youngest; Python's own number is 700."""

log = logging.getLogger("pybroker")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="a server.properties in Kafka's format")
    parser.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="a setting that wins over the file"
    )
    parser.add_argument(
        "--log-level",
        default="info",
        choices=["debug", "info", "warning", "error"],
        help="what is logged to stderr (default: info)",
    )


def read_config(arguments: argparse.Namespace) -> BrokerConfig:
    """Return the settings that the options name; raises CommandError for a wrong one."""
    try:
        config = BrokerConfig.from_properties(arguments.config, arguments.override)
        overrides = parse_overrides(arguments.override)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    # A file may be Kafka's, with keys for parts that are not here. What is typed by hand is meant for this broker: a
    # slip of `listeners` would open every interface.
    for name in config.unknown:
        if name in overrides:
            near = broker_suggestion(name.partition(":")[0])
            meant = f"; is {near} meant?" if near else ""
            raise CommandError(f"--override {name}={overrides[name]}: there is no such setting{meant}")
    return config


def run(arguments: argparse.Namespace) -> int:
    """Run the broker and return 0 when it was stopped cleanly."""
    logging.basicConfig(
        stream=sys.stderr,
        level=arguments.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    config = read_config(arguments)
    for name in config.unknown:
        near = broker_suggestion(name)
        log.warning("unknown configuration %s is ignored%s", name, f"; is {near} meant?" if near else "")
    warning = heartbeat_warning(config)
    if warning is not None:
        log.error(warning)
    raise_limit()
    fix_thresholds()
    try:
        uvloop.run(_serve(config))
    except NodeError as error:
        raise CommandError(str(error)) from None
    return 0


async def _serve(config: BrokerConfig) -> None:
    node = Node(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def signalled(number: int) -> None:
        if stop.is_set() and number != signal.SIGHUP:
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, signalled, number)
    listeners = await node.start()
    addresses = " ".join(str(listener) for listener in listeners)
    data = ",".join(str(path) for path in config.log_directories)
    # What a started broker holds it holds for good: no collection has to walk it again.
    gc.freeze()
    # Requests leave next to no cycles behind: a collection for every thirty of them would find nothing.
    gc.set_threshold(_YOUNG_OBJECTS)
    gc.enable()
    print(f"pybroker {__version__} ready: {addresses} data {data}", flush=True)
    stopped = asyncio.ensure_future(stop.wait())
    failed = asyncio.ensure_future(node.failed())
    await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
    await node.stop()
    stopped.cancel()
    if failed.done():
        raise failed.result()
    failed.cancel()
