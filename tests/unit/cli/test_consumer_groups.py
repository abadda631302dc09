"""What excludes what on the command line of `pybroker consumer-groups`, in the words of Kafka's tool."""

from __future__ import annotations

import pytest

from pybroker.cli.main import main

SERVER = ("--bootstrap-server", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (
            (),
            "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets",
        ),
        (("--list", "--describe"), "Command must include exactly one action"),
        ((*SERVER, "--list", "--timeout", "-1"), "--timeout -1: expected milliseconds from 1 to 2147483647"),
        ((*SERVER, "--list", "--timeout", "0"), "--timeout 0: expected milliseconds from 1 to 2147483647"),
        (("--bootstrap-server", "nonsense", "--list"), "bootstrap.servers=nonsense: expected host:port, with a port"),
        (("--list",), 'Missing required argument "[bootstrap-server]"'),
        ((*SERVER, "--describe"), "Option [describe] takes one of these options: [group], [all-groups]"),
        ((*SERVER, "--describe", "--group", "g", "--state", "stable"), "does not take a value for [state]"),
        ((*SERVER, "--describe", "--group", "g", "--members", "--offsets"), "takes at most one of these options"),
        ((*SERVER, "--delete", "--group", "g", "--topic", "t"), "does not support topic-specific offset deletion"),
        ((*SERVER, "--delete-offsets", "--group", "g"), "takes the following options: [group], [topic]"),
        ((*SERVER, "--list", "--group", "g"), 'Option "[group]" can\'t be used with option "[list]"'),
        (
            (*SERVER, "--reset-offsets", "--group", "g", "--topic", "t", "--dry-run", "--execute"),
            "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
        ),
        (
            (*SERVER, "--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--shift-by", "1"),
            'Option "[to-latest]" can\'t be used with option "[shift-by]"',
        ),
        ((*SERVER, "--reset-offsets", "--group", "g", "--topic", "t"), "requires one of the following scenarios"),
        ((*SERVER, "--reset-offsets", "--group", "g", "--to-latest"), "One of the reset scopes should be defined"),
        ((*SERVER, "--list", "--state", "sleepy"), "Invalid state list 'sleepy'. Valid states are: "),
        ((*SERVER, "--list", "--type", "share"), "Invalid types list 'share'. Valid types are: "),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reported: str
) -> None:
    assert main(["consumer-groups", *words]) == 1
    assert reported in capsys.readouterr().err.splitlines()[-1]
