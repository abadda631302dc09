"""`pybroker start`: runs a broker, in the foreground or as a service, until a signal ends it.

Owns options, the ready line, and the reaction to signals. Must not know how a broker is constructed.

The ready line is the only output on stdout: `pybroker 0.1.0 ready: PLAINTEXT://127.0.0.1:9092 data /tmp/pybroker-logs`.
The broker continues where the line cannot be written. A second SIGTERM or SIGINT ends the process at once, as after a
crash, and so does a stop that takes too long.

SIGHUP stops a broker with a terminal. A second one does not end it at once: when a terminal closes, its shell and the
kernel each send one. Under nohup, which ignores SIGHUP, the broker continues. A service has no terminal, and reloads
its settings (docs/adr/0079-sighup-reloads-a-service.md).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import uvloop

from pybroker import __version__
from pybroker.cli import standard_output
from pybroker.cli.errors import CommandError
from pybroker.cli.service.deadline import begin_deadline, end_hard
from pybroker.cli.service.detached import Reporter, detach
from pybroker.cli.service.log_output import FORMATS, open_log, set_levels
from pybroker.cli.service.notifier import Notifier
from pybroker.cli.service.pid_file import PidFile
from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.config.properties import parse_overrides
from pybroker.config.roles import heartbeat_warning
from pybroker.config.shown import changed_texts
from pybroker.config.topic import broker_suggestion
from pybroker.net.allocator import fix_thresholds
from pybroker.net.descriptors import raise_limit
from pybroker.net.slices import take_slice
from pybroker.node import Node, NodeError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pybroker.cli.service.rolling_file import RollingFile

DESCRIPTION = (
    "Run a broker, in the foreground or with -d in the background. Without options it listens on port 9092 with "
    "Kafka's defaults."
)

_YOUNG_OBJECTS = 10_000
"""Number of new objects between two collections of the youngest generation. Python's default is 700."""
_LOG_FILE_BYTES = 100 * 1024**2
_LOG_FILES = 10
_STOP_SECONDS = 300.0

log = logging.getLogger("pybroker")


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for a broker's settings."""
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="a server.properties in Kafka's format")
    parser.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="a setting that overrides the file"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_config_options(parser)
    parser.add_argument("properties", nargs="?", type=Path, metavar="FILE", help="the same as --config FILE")
    parser.add_argument(
        "-d",
        "--daemon",
        "-daemon",
        action="store_true",
        help="run in the background, without a terminal; returns when the broker is ready. Needs --log-file",
    )
    parser.add_argument(
        "--service",
        action="store_true",
        help="reload the settings on SIGHUP instead of stopping; implied by -d and under systemd",
    )
    parser.add_argument(
        "--pid-file", type=Path, metavar="FILE", help="file that contains the process id while the broker is ready"
    )
    parser.add_argument(
        "--log-level",
        action="append",
        default=[],
        metavar="LEVEL|LOGGER=LEVEL",
        help="log level of all loggers or of one: fatal, error, warn, info, debug or trace (default: info)",
    )
    parser.add_argument(
        "--log-format", choices=FORMATS, default="text", help="format of log lines: text or JSON (default: text)"
    )
    parser.add_argument(
        "--log-file", type=Path, metavar="FILE", help="log file, rolled by size (default: standard error)"
    )
    parser.add_argument(
        "--log-file-bytes",
        type=int,
        default=_LOG_FILE_BYTES,
        metavar="N",
        help="size in bytes at which the log file is rolled, 0 for never (default: %(default)s)",
    )
    parser.add_argument(
        "--log-files", type=int, default=_LOG_FILES, metavar="N", help="rolled files to keep (default: %(default)s)"
    )
    parser.add_argument(
        "--stop-timeout",
        type=float,
        default=_STOP_SECONDS,
        metavar="SECONDS",
        help="maximum time of a stop before the process is killed, 0 for no limit (default: %(default)g)",
    )


def read_config(arguments: argparse.Namespace) -> BrokerConfig:
    """Return the settings of the options. Raises CommandError for an invalid one."""
    try:
        config = BrokerConfig.from_properties(arguments.config, arguments.override)
        overrides = parse_overrides(arguments.override)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    # A file may be Kafka's, with keys for missing features. Options are meant for this broker: a misspelled `listeners`
    # would open every interface.
    for name in config.unknown:
        if name in overrides:
            raise CommandError(f"--override {name}={overrides[name]}: there is no such setting{meant(name)}")
    return config


def meant(name: str) -> str:
    """Return a suggestion of the setting nearest to an unknown one, empty where none is near."""
    near = broker_suggestion(name.partition(":")[0])
    return f"; is {near} meant?" if near else ""


class _Service(NamedTuple):
    """The environment of a broker."""

    notifier: Notifier
    pid_file: PidFile | None
    log_file: RollingFile | None
    announce: Callable[[str], None]
    """Called with the ready line."""
    read: Callable[[], BrokerConfig]
    """Reloads the settings. Raises CommandError."""
    reloads: bool
    """Whether SIGHUP reloads them."""
    stop_s: float


def run(arguments: argparse.Namespace) -> int:
    """Run the broker and return 0 after a clean stop."""
    _check_options(arguments)
    config = read_config(arguments)
    pid_file = None if arguments.pid_file is None else PidFile(arguments.pid_file)
    reporter: Reporter | None = None
    if arguments.daemon:
        detached = detach(arguments.log_file.with_name(arguments.log_file.name + ".out"))
        if isinstance(detached, str):
            standard_output.write_line(detached)  # The broker runs, also where the line is lost.
            return 0
        reporter = detached
    try:
        return _run(arguments, config, pid_file, reporter)
    except CommandError as error:
        if reporter is not None:
            reporter.failed(str(error))
        raise


def _check_options(arguments: argparse.Namespace) -> None:
    if arguments.properties is not None:
        if arguments.config is not None:
            raise CommandError(f"{arguments.properties}: --config {arguments.config} names the settings already", 2)
        arguments.config = arguments.properties
    if arguments.daemon and arguments.log_file is None:
        raise CommandError("-d needs --log-file FILE: without a terminal there is no standard error to log to", 2)
    for name, value in (("bytes", arguments.log_file_bytes), ("s", arguments.log_files)):
        if value < 0:
            raise CommandError(f"--log-file{'-' if name == 'bytes' else ''}{name} {value}: expected 0 or more", 2)
    if arguments.stop_timeout < 0:
        raise CommandError(f"--stop-timeout {arguments.stop_timeout:g}: expected seconds, 0 for no deadline", 2)


def _run(
    arguments: argparse.Namespace, config: BrokerConfig, pid_file: PidFile | None, reporter: Reporter | None
) -> int:
    log_file = open_log(
        arguments.log_file, arguments.log_format, size=arguments.log_file_bytes, kept=arguments.log_files
    )
    set_levels(arguments.log_level)
    for name in config.unknown:
        log.warning("Ignoring the unknown configuration %s%s", name, meant(name))
    warning = heartbeat_warning(config)
    if warning is not None:
        log.error(warning)
    changed = ", ".join(f"{name}={text}" for name, text in changed_texts(config))
    log.info(
        "pybroker %s starts on Python %s; settings that are not defaults: %s",
        __version__,
        sys.version.split()[0],
        changed,
    )
    raise_limit()
    fix_thresholds()
    take_slice()
    notifier = Notifier()
    service = _Service(
        notifier=notifier,
        pid_file=pid_file,
        log_file=log_file,
        announce=_print_ready if reporter is None else reporter.ready,
        read=lambda: read_config(arguments),
        reloads=arguments.daemon or arguments.service or notifier.is_there,
        stop_s=arguments.stop_timeout,
    )
    try:
        uvloop.run(_serve(config, service))
    except (NodeError, ConfigError) as error:
        if arguments.daemon:
            log.error("%s", error)
        raise CommandError(str(error)) from None
    finally:
        if pid_file is not None:
            pid_file.remove()
    return 0


def _print_ready(line: str) -> None:
    lost = standard_output.write_line(line)
    if lost is not None:
        log.warning("Cannot write the ready line to standard output: %s. The broker continues.", lost.strerror)


async def _serve(config: BrokerConfig, service: _Service) -> None:
    node = Node(config)
    stop, responses = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop_by(number: signal.Signals) -> None:
        if stop.is_set() and number != signal.SIGHUP:
            end_hard(128 + number, f"a second signal to stop ({number.name})")
        log.info("stopping: %s", number.name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number == signal.SIGHUP and service.reloads:
            loop.add_signal_handler(number, _reload, node, service, responses)
        elif number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, stop_by, number)
    listeners = await node.start()
    addresses = " ".join(str(listener) for listener in listeners)
    data = ",".join(str(path) for path in config.log_directories)
    # The objects of a started broker live as long as it: no collection must scan them again.
    gc.freeze()
    # Requests leave almost no cycles: a collection every thirty requests would find nothing.
    gc.set_threshold(_YOUNG_OBJECTS)
    gc.enable()
    stopped = asyncio.ensure_future(stop.wait())
    failed = asyncio.ensure_future(node.failed())
    try:
        if service.pid_file is not None:
            service.pid_file.write()
        responses.set()
        service.notifier.ready(f"listening on {addresses}")
        service.notifier.watch(loop)
        service.announce(f"pybroker {__version__} ready: {addresses} data {data}")
        await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        responses.clear()
        service.notifier.stopping("stopping")
        service.notifier.rest()
        deadline = begin_deadline(service.stop_s)
        await node.stop()
        if deadline is not None:
            deadline.cancel()
        stopped.cancel()
    if failed.done():
        raise failed.result()
    failed.cancel()
    log.info("stopped")


def _reload(node: Node, service: _Service, responses: asyncio.Event) -> None:
    """Reopen the log file, and reload settings and certificates; an error is logged and changes nothing."""
    if service.log_file is not None:
        service.log_file.reopen()
    if not responses.is_set():  # The service manager would take the end of a reload for the end of the start.
        log.info("SIGHUP: log file reopened; settings are not reloaded while the broker starts or stops")
        return
    service.notifier.reloading()
    try:
        reread = node.reload(service.read())
    except (CommandError, ConfigError, NodeError) as error:
        log.error("SIGHUP: keeping the previous settings: %s", error)
    else:
        log.info("SIGHUP: log file reopened; applied settings: %s", ", ".join(reread.taken) or "none")
        if reread.left:
            log.warning("SIGHUP: these settings need a restart: %s", ", ".join(reread.left))
    service.notifier.ready("running")
