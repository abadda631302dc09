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
        "Secret that delegation tokens are made of and proved by, the same on all brokers and controllers; without it "
        "there are none. Who changes it ends all tokens.",
        acts=True,
        dynamic=False,
    )
    delegation_token_max_lifetime_ms = long(
        7 * _DAY_MS, "Longest life, in ms, of a delegation token, however often it is renewed.", at_least=1
    )
    delegation_token_expiry_time_ms = long(
        _DAY_MS, "Life, in ms, of a delegation token from when it is made or renewed.", at_least=1
    )
    delegation_token_expiry_check_interval_ms = long(
        _HOUR_MS, "How often, in ms, delegation tokens that have ended are removed.", at_least=1
    )
    delegation_token_max_per_owner = integer(
        INT_MAX,
        "Delegation tokens of one owner at a time, those that have ended and are not yet removed among them; another "
        "one is rejected with POLICY_VIOLATION. The active controller's value counts.",
        at_least=1,
        ours="lower it to stop a program that creates tokens in a loop before others notice",
    )
