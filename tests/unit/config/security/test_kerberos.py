"""What a listener of GSSAPI needs, and which are refused at the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.config.security import kerberos
from pybroker.config.security.kerberos import KerberosSettings, LocalRule, parse_local_rules

LISTENERS = {
    "listeners": "IN://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "sasl.kerberos.service.name": "kafka",
}
MODULE = "com.sun.security.auth.module.Krb5LoginModule required "
JAAS = MODULE + 'useKeyTab=true storeKey=true principal="kafka/host@REALM";'
JAAS_KEY = "listener.name.in.gssapi.sasl.jaas.config"


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig({**LISTENERS, "sasl.enabled.mechanisms": "GSSAPI", **settings})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kerberos, "find_spec", lambda name: name)


@pytest.mark.usefixtures("installed")
def test_the_login_module_says_whose_keys_they_are_and_where(tmp_path: Path) -> None:
    keys = tmp_path / "kafka.keytab"
    keys.touch()
    jaas = JAAS.replace("principal=", f'keyTab="{keys}" serviceName="kafka" principal=')
    rules = {"listener.name.in.sasl.kerberos.principal.to.local.rules": "RULE:[1:$1@$0](.*@OTHER)s/@.*///L, DEFAULT"}
    (offered,) = config(**{JAAS_KEY: jaas}, **rules).sasl_of_listeners().values()
    assert offered.mechanisms == ("GSSAPI",)
    first = LocalRule("RULE:[1:$1@$0](.*@OTHER)s/@.*///L", "$1@$0", 1, ".*@OTHER", "@.*", "", case="L")
    assert offered.kerberos == KerberosSettings("kafka/host@REALM", str(keys), (first, LocalRule("DEFAULT")))
    (offered,) = config(**{JAAS_KEY: JAAS}).sasl_of_listeners().values()
    assert offered.kerberos == KerberosSettings("kafka/host@REALM")


def test_a_broker_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kerberos, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"enabled\.mechanisms=GSSAPI: expected .*pip install 'gssapi>=1\.8'"):
        BrokerConfig(LISTENERS)  # GSSAPI is the default.


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, f"{JAAS_KEY}=: expected a login module with the broker's key, as in com.sun.security.auth.module"),
        ({JAAS_KEY: JAAS.replace("useKeyTab=true", "")}, f"{JAAS_KEY}: useKeyTab=: expected true"),
        ({JAAS_KEY: JAAS.replace("storeKey=true", "storeKey=false")}, "storeKey=false: expected true"),
        ({JAAS_KEY: JAAS.replace("kafka/host@REALM", "*")[:-1].replace("*", "a@b@c") + ";"}, "principal=a@b@c: exp"),
        ({JAAS_KEY: JAAS.replace(' principal="kafka/host@REALM"', "")}, "principal=: expected the broker's principal"),
        ({JAAS_KEY: JAAS.replace("storeKey", 'keyTab="/no/where" storeKey')}, "keyTab=/no/where: expected a keytab"),
        ({JAAS_KEY: JAAS.replace("Krb5LoginModule", "OtherModule")}, "expected the Krb5LoginModule of GSSAPI"),
        ({JAAS_KEY: JAAS, "sasl.kerberos.service.name": ""}, "sasl.kerberos.service.name=: expected the first part"),
        (
            {JAAS_KEY: JAAS.replace("storeKey", 'serviceName="other" storeKey')},
            "sasl.kerberos.service.name=kafka: expected other, the serviceName of the login module",
        ),
        (
            {JAAS_KEY: JAAS, "sasl.kerberos.principal.to.local.rules": "DEFAULT,default"},
            "rules=DEFAULT,default: expected DEFAULT or RULE:[n:format]",
        ),
    ],
)
def test_a_listener_that_could_accept_nobody_is_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**settings)
    assert words in str(caught.value)


# Those of Kafka's KerberosRuleTest and KerberosNameTest, and references and patterns that are none.
@pytest.mark.parametrize(
    "text",
    [
        *("default", "DEFAUL", "DEFAULT/L", "DEFAULT/g", "rule:[1:$1]", "rule:[1:$1]/L/U", "RULE:[1:$1]/LU"),
        *("RULE:[1:$1/L", "RULE:[1:$1]/l", "RULE:[2:$1](ABC.*)s/ABC/XYZ/L/g", "RULE:[:$1]", ""),
        *("RULE:[1:$2]", "RULE:[1:$]", "RULE:[1:$1](a(b)", "RULE:[1:$1]s/(?=a)/b/"),
    ],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(DEFAULT or RULE|only references from|RE2 patterns)"):
        parse_local_rules([text])
