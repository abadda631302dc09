from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.client.administration.admin import Admin
from pybroker.config.errors import ConfigError


def opened(*arguments: str, **defaults: object) -> Admin:
    parser = argparse.ArgumentParser()
    add_cluster_options(parser, properties=True)
    return open_admin(parser.parse_args(["--bootstrap-server", "h:1", *arguments]), defaults)


def test_a_setting_in_the_command_wins_over_the_file_and_that_over_the_commands_own(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=file\nrequest.timeout.ms=2\nbootstrap.servers=g:2\n")
    given = ("--command-config", str(file), "--command-property", "client.id=command")
    own = {"client.id": "own", "request.timeout.ms": "1", "retry.backoff.ms": "7"}
    with opened(*given, **own) as admin:
        settings = admin._async.cluster.settings
    assert (settings.client_id, settings.request_timeout_ms, settings.retry_backoff_ms) == ("command", 2, 7)
    assert settings.bootstrap_servers == "h:1"


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        opened("--command-config", str(tmp_path / "missing"))
