"""`pybroker delegation-tokens`: made, renewed, ended and listed, with kafka-delegation-tokens' options and output.

Owns the output, which is that of Kafka 4.3's tool. Must not know the protocol: it uses Admin, and works with any Kafka.
"""

from __future__ import annotations

import binascii
import time
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json, refuse_json
from pybroker.cli.kafka_exceptions import java_text
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from pathlib import Path

    from pybroker.client.administration.admin import Admin
    from pybroker.client.administration.token_admin import Token

DESCRIPTION = (
    "Create, renew, expire and describe delegation tokens. Options and output are those of kafka-delegation-tokens."
)

JSON = {
    "--describe": [
        {
            "tokenId": "string",
            "hmac": "string",
            "owner": "string",
            "requester": "string",
            "renewers": ["string"],
            "issuedMs": "integer",
            "expiresMs": "integer",
            "endsMs": "integer",
        }
    ]
}
_ROW = "\n{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"
_HEADINGS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
_NEEDED = {
    "create": ("max_life_time_period",),
    "renew": ("hmac", "renew_time_period"),
    "expire": ("hmac", "expiry_time_period"),
    "describe": (),
}
_REFUSED = {
    "create": ("hmac", "renew_time_period", "expiry_time_period"),
    "renew": ("renewer_principal", "max_life_time_period", "expiry_time_period", "owner_principal"),
    "expire": ("renewer_principal", "max_life_time_period", "renew_time_period", "owner_principal"),
    "describe": ("renewer_principal", "renew_time_period", "max_life_time_period", "hmac", "expiry_time_period"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT", help="brokers to connect to")
    parser.add_argument(
        "--command-config",
        required=True,
        type=Path,
        metavar="FILE",
        help="client settings, with the login of a user",
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--create", action="store_true", help="create a token")
    action.add_argument("--renew", action="store_true", help="extend the expiry of a token")
    action.add_argument("--expire", action="store_true", help="change the expiry of a token, or expire it now")
    action.add_argument(
        "--describe", action="store_true", help="describe tokens of owners, or all that the user may describe"
    )
    parser.add_argument(
        "--owner-principal",
        nargs="?",
        action="append",
        default=[],
        metavar="User:NAME",
        help="with --create: the owner of the token; with --describe: only tokens of these owners",
    )
    parser.add_argument(
        "--renewer-principal",
        nargs="?",
        action="append",
        default=[],
        metavar="User:NAME",
        help="a principal that may also renew the token",
    )
    parser.add_argument(
        "--max-life-time-period", type=int, metavar="MS", help="maximum lifetime in ms; -1 for the broker's default"
    )
    parser.add_argument(
        "--renew-time-period", type=int, metavar="MS", help="new time to expiry in ms; -1 for the broker's default"
    )
    parser.add_argument(
        "--expiry-time-period", type=int, metavar="MS", help="new time to expiry in ms; -1 expires the token now"
    )
    parser.add_argument("--hmac", help="the HMAC of the token, as --create and --describe print it")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Create, renew, expire or list tokens, and return 0."""
    # As in Kafka's tool, an option without its principal counts as absent.
    arguments.owner_principal = [one for one in arguments.owner_principal if one is not None]
    arguments.renewer_principal = [one for one in arguments.renewer_principal if one is not None]
    action = next(name for name in _NEEDED if getattr(arguments, name))
    for name in _NEEDED[action]:
        if getattr(arguments, name) is None:
            raise CommandError(f"--{action} needs {_option(name)}")
    for name in _REFUSED[action]:
        if getattr(arguments, name) not in (None, []):
            raise CommandError(f"Option {_option(name)} can't be used with option --{action}")
    if action != "describe":
        refuse_json(arguments, "--describe")
    try:
        with open_admin(arguments) as admin:
            _ACTIONS[action](admin, arguments)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    except ClientError as error:
        raise CommandError(java_text(error)) from None
    return 0


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _create(admin: Admin, arguments: argparse.Namespace) -> None:
    renewers, period = [one.strip() for one in arguments.renewer_principal], arguments.max_life_time_period
    print(f"Calling create token operation with renewers :{_list(renewers)} , max-life-time-period :{period}")
    owner = arguments.owner_principal[0].strip() if arguments.owner_principal else None
    token = admin.create_token(renewers=renewers, max_lifetime_ms=period, owner=owner)
    print(f"Created delegation token with tokenId : {token.token_id}")
    _print([token])


def _renew(admin: Admin, arguments: argparse.Namespace) -> None:
    hmac, period = arguments.hmac, arguments.renew_time_period
    print(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period}")
    ends = admin.renew_token(_decoded(hmac), period)
    print(f"Completed renew operation. New expiry date : {_date(ends)}", end="")


def _expire(admin: Admin, arguments: argparse.Namespace) -> None:
    hmac, period = arguments.hmac, arguments.expiry_time_period
    print(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period}")
    ends = admin.expire_token(_decoded(hmac), period)
    print(f"Completed expire operation. New expiry date : {_date(ends)}", end="")


def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    owners = [one.strip() for one in arguments.owner_principal]
    if arguments.json:
        print_json([_as_json(token) for token in admin.describe_tokens(owners or None)])
        return
    if owners:
        print(f"Calling describe token operation for owners: {_list(owners)}")
    else:
        print("Calling describe token operation for current user.")
    tokens = admin.describe_tokens(owners or None)
    print(f"Total number of tokens : {len(tokens)}", end="")
    _print(tokens)


def _as_json(token: Token) -> dict[str, object]:
    return {
        "tokenId": token.token_id,
        "hmac": token.password,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": sorted(token.renewers),
        "issuedMs": token.issued_ms,
        "expiresMs": token.expires_ms,
        "endsMs": token.ends_ms,
    }


_ACTIONS = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}


def _print(tokens: Iterable[Token]) -> None:
    print(_ROW.format(*_HEADINGS))
    for token in tokens:
        dates = [_date(at) for at in (token.issued_ms, token.expires_ms, token.ends_ms)]
        print(
            _ROW.format(
                token.token_id, token.password, token.owner, token.requester, _list(sorted(token.renewers)), *dates
            )
        )


def _list(principals: Iterable[str]) -> str:
    return f"[{', '.join(principals)}]"


def _date(at_ms: int) -> str:
    """Return a time in the format of Kafka's tool: local, in minutes."""
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(at_ms // 1000))


def _decoded(hmac: str) -> bytes:
    try:
        return b64decode(hmac, validate=True)
    except binascii.Error:
        raise CommandError(f"--hmac {hmac}: expected base64, as --create prints it") from None
