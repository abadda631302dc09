"""What listeners of SASL offer, and which are refused at the start."""

from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
LISTENERS = {"listeners": "IN://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", "listener.security.protocol.map": ""}


def config(**settings: str) -> BrokerConfig:
    protocols = {"listener.security.protocol.map": "IN:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT"}
    return BrokerConfig({**LISTENERS, **protocols, **settings})


def test_a_key_of_a_listener_and_mechanism_speaks_before_others() -> None:
    made = config(
        **{
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.in.plain.sasl.jaas.config": JAAS,
            "plain.sasl.jaas.config": JAAS.replace("alice", "other"),
            "connections.max.reauth.ms": "1000",
            "listener.name.IN.scram-sha-256.connections.max.reauth.ms": "2000",
        }
    )
    (offered,) = made.sasl_of_listeners().values()
    assert offered.mechanisms == ("PLAIN", "SCRAM-SHA-256")
    assert offered.plain_users == {"alice": "secret"}
    assert offered.max_reauth_ms == {"PLAIN": 1000, "SCRAM-SHA-256": 2000}
    assert "secret" not in repr(offered)


def test_a_listener_that_asks_nobody_needs_nothing() -> None:
    assert BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0"}).sasl_of_listeners() == {}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sasl.enabled.mechanisms": "PLAIN,X"}, "sasl.enabled.mechanisms=PLAIN,X: expected one or more of"),
        ({"sasl.enabled.mechanisms": ""}, "expected one or more of"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "listener.name.in.plain.sasl.jaas.config=: expected users, as in"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": JAAS.replace("Plain", "Scram")},
            "expected the PlainLoginModule of PLAIN",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": JAAS[:-1]},
            "[hidden]: expected a JAAS configuration",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": JAAS + JAAS},
            "expected one login module, not 2",
        ),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-512", "listener.name.in.connections.max.reauth.ms": "soon"},
            "connections.max.reauth.ms=soon: expected milliseconds, 0 for never",
        ),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "listener.name.in.scram-sha-512.sasl.server.callback.handler.class": "a.B",
            },
            "expected no class: none is loaded",
        ),
    ],
)
def test_a_listener_that_could_not_be_served_is_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**settings)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value).replace('user_alice="secret";', "", 1)


LONGEST = 2**63 - 1
HANDLER = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


def bearer(**settings: str) -> BrokerConfig:
    return config(
        **{
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "super.users": "User:admin",
            "listener.name.in.oauthbearer.sasl.jaas.config": "x.OAuthBearerLoginModule required;",
            **settings,
        }
    )


def unsecured(skew: str) -> BrokerConfig:
    jaas = f'x.OAuthBearerLoginModule required unsecuredValidatorAllowableClockSkewMs="{skew}";'
    return bearer(
        **{
            "listener.name.in.oauthbearer.sasl.jaas.config": jaas,
            "listener.name.in.oauthbearer.sasl.server.callback.handler.class": HANDLER,
        }
    )


@pytest.mark.parametrize("skew", ["9" * 5000, "9" * 400, str(LONGEST + 1), "\u0663", "-1", "soon"])
def test_a_clock_skew_is_a_number_that_fits_kafkas(skew: str) -> None:
    with pytest.raises(ConfigError) as caught:
        unsecured(skew)
    words = f"unsecuredValidatorAllowableClockSkewMs={skew}: expected milliseconds, from 0 to {LONGEST}"
    assert words in str(caught.value)


def test_the_longest_clock_skew_is_taken() -> None:
    (offered,) = unsecured(str(LONGEST)).sasl_of_listeners().values()
    assert offered.bearer is not None
    assert offered.bearer.skew_s == LONGEST / 1000


@pytest.mark.parametrize("text", ["9" * 5000, "9" * 400, "\u0663"])
def test_a_listeners_own_number_of_tokens_fits_kafkas(text: str) -> None:
    url = "sasl.oauthbearer.jwks.endpoint.url"
    with pytest.raises(ConfigError, match=f"expected a number, from 0 to {LONGEST}"):
        bearer(**{url: "file:///keys", "listener.name.in.sasl.oauthbearer.clock.skew.seconds": text})


def test_an_address_of_keys_whose_bracket_does_not_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected an https: or file: address"):
        bearer(**{"sasl.oauthbearer.jwks.endpoint.url": "https://[::1"})
