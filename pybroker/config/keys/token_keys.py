"""Keys of delegation tokens: the secret shared by all nodes, token lifetimes, tokens of an owner.

Tokens are available only with a secret. Must not know tokens.
"""

from __future__ import annotations

from pybroker.config.key import INT_MAX, integer, long, password
from pybroker.config.settings import Settings

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


class TokenKeys(Settings):
    """The settings of delegation tokens (KIP-48), equal on all nodes."""

    delegation_token_secret_key = password(
        "Secret with which delegation tokens are created and verified, the same on all brokers and controllers. "
        "Without it, there are no delegation tokens. A change of the secret invalidates all of them.",
        acts=True,
        dynamic=False,
    )
    delegation_token_max_lifetime_ms = long(
        7 * _DAY_MS, "Maximum lifetime in ms of a delegation token, including all renewals.", at_least=1
    )
    delegation_token_expiry_time_ms = long(
        _DAY_MS, "Time in ms from the creation or renewal of a delegation token to its expiry.", at_least=1
    )
    delegation_token_expiry_check_interval_ms = long(
        _HOUR_MS, "Time in ms between two removals of expired delegation tokens.", at_least=1
    )
    delegation_token_max_per_owner = integer(
        INT_MAX,
        "Maximum number of delegation tokens of one owner, including expired ones that are not yet removed. Further "
        "ones are rejected with POLICY_VIOLATION. The value of the active controller applies.",
        at_least=1,
        ours="lower it to limit a program that creates tokens in a loop",
    )
