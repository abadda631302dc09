"""Keys of tokens of OAUTHBEARER: who signs them, and what they have to say.

Owns that they are taken as Kafka takes them; they are read for each listener (`config.oauth`). Must not know listeners.
"""

from __future__ import annotations

from pybroker.config.key import integer, listing, long, optional_string, string
from pybroker.config.settings import Settings


class OAuthKeys(Settings):
    """What a broker holds tokens against (KIP-768)."""

    sasl_oauthbearer_jwks_endpoint_url = optional_string(
        "Where the keys are that tokens of OAUTHBEARER are signed with (JWKS): an https: or file: address. It needs "
        "pybroker[oauth]. listener.name.<name>.sasl.oauthbearer.* sets these keys for one listener."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = long(
        3_600_000, "How old, in ms, those keys may be before they are asked for again."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = long(
        100, "Pause, in ms, after the first attempt to get the keys that failed; it doubles with each further one."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = long(10_000, "Longest such pause, in ms.")
    sasl_oauthbearer_expected_audience = listing((), "Audiences (aud) of which a token has to name one; any if empty.")
    sasl_oauthbearer_expected_issuer = optional_string("The issuer (iss) that a token has to name.")
    sasl_oauthbearer_scope_claim_name = string("scope", "The claim that has a token's scopes.")
    sasl_oauthbearer_sub_claim_name = string("sub", "The claim that has the user.")
    sasl_oauthbearer_clock_skew_seconds = integer(
        30, "By how many seconds the clocks of broker and issuer may differ.", at_least=0
    )
