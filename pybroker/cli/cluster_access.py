"""How commands find their cluster: the options that name it, and the admin that these open.

Owns the options' names, which are those of Kafka's tools. Must not know a command's requests.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.client.administration.admin import Admin
from pybroker.client.settings import AdminSettings
from pybroker.config.properties import parse_overrides, read_properties

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


def add_cluster_options(parser: argparse.ArgumentParser, *, properties: bool = False, required: bool = True) -> None:
    """Declare the options; with `properties`, client settings may also be given one by one.

    Without `required` the command itself reports missing servers.
    """
    parser.add_argument("--bootstrap-server", required=required, metavar="HOST:PORT", help="brokers to connect to")
    parser.add_argument("--command-config", type=Path, metavar="FILE", help="client settings")
    if properties:
        parser.add_argument("--command-property", action="append", default=[], metavar="K=V", help="a client setting")


def add_node_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Declare the options of a command that sends requests to brokers or controllers.

    Without `required` the command itself reports missing servers.
    """
    servers = parser.add_mutually_exclusive_group(required=required)
    servers.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to")
    servers.add_argument("--bootstrap-controller", metavar="HOST:PORT", help="controllers to connect to")
    parser.add_argument("--command-config", type=Path, metavar="FILE", help="client settings")


def open_admin(
    arguments: argparse.Namespace, defaults: Mapping[str, object] | None = None, *, of_server: bool = False
) -> Admin:
    """Return an admin with the given client settings, over `defaults`. Raises ConfigError and SettingError.

    The option's servers override those of a settings file. `of_server`: the file is a node's server.properties, of
    which only the keys of clients are used.
    """
    properties = dict(defaults or {})
    if arguments.command_config is not None:
        given = read_properties(arguments.command_config)
        properties.update({key: value for key, value in given.items() if not of_server or key in AdminSettings.keys})
    properties.update(parse_overrides(getattr(arguments, "command_property", ())))
    controllers = getattr(arguments, "bootstrap_controller", None)
    servers = {"bootstrap.servers": None, "bootstrap.controllers": controllers}
    return Admin(arguments.bootstrap_server, {**properties, **servers})
