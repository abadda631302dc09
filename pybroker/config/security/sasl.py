"""SASL settings of listeners: mechanisms, users, and re-authentication intervals.

Owns which key applies to a listener and a mechanism, in Kafka's order: `listener.name.NAME.MECHANISM.KEY`, then
`listener.name.NAME.KEY` and `MECHANISM.KEY`, then KEY. A listener without any possible login is rejected. Must not
know exchanges.

Source: Kafka's JaasContext, ChannelBuilders and SaslServerAuthenticator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.config.errors import ConfigError
from pybroker.config.key import parse_list
from pybroker.config.security.jaas import JaasError, parse_jaas
from pybroker.config.security.kerberos import GSSAPI, build_kerberos
from pybroker.config.security.oauth import HANDLER, LOGIN_HANDLER, LOGIN_HANDLERS, OAUTHBEARER, build_bearer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pybroker.config.security.jaas import LoginModule
    from pybroker.config.security.kerberos import KerberosSettings
    from pybroker.config.security.oauth import BearerSettings

PLAIN = "PLAIN"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SUPPORTED = (PLAIN, *SCRAM, OAUTHBEARER, GSSAPI)
"""The supported mechanisms; the last one requires a package of an extra."""

ENABLED_KEY = "sasl.enabled.mechanisms"
JAAS_KEY = "sasl.jaas.config"
REAUTH_KEY = "connections.max.reauth.ms"
_CALLBACKS = (HANDLER, LOGIN_HANDLER, "sasl.login.class")
_MODULES = {
    PLAIN: "PlainLoginModule",
    **dict.fromkeys(SCRAM, "ScramLoginModule"),
    OAUTHBEARER: "OAuthBearerLoginModule",
    GSSAPI: "Krb5LoginModule",
}
_USER = "user_"


class ListenerSasl(msgspec.Struct, frozen=True):
    """The SASL settings of one listener."""

    mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str]
    """Passwords by user."""
    max_reauth_ms: Mapping[str, int]
    """By mechanism: the session lifetime in ms, after which a client must re-authenticate; 0 for unlimited."""

    bearer: BearerSettings | None = None
    """The validation of OAUTHBEARER tokens; None where it is not enabled."""
    kerberos: KerberosSettings | None = None
    """The Kerberos settings; None where GSSAPI is not enabled."""

    def __repr__(self) -> str:
        return f"ListenerSasl({', '.join(self.mechanisms)})"  # Passwords must not be logged.


class ListenerTexts:
    """The settings of one listener."""

    def __init__(self, texts: Mapping[str, str], listener: str) -> None:
        """`texts` are by full name; the prefix `listener.name.NAME.` matches in any case."""
        self._texts = texts
        prefix = f"listener.name.{listener.lower()}."
        self._own = {name[len(prefix) :]: text for name, text in texts.items() if name.lower().startswith(prefix)}

    def get(self, name: str, mechanism: str | None = None) -> tuple[str, str] | None:
        """Return the full name and the text of the effective setting of a key; None without one."""
        names = [name] if mechanism is None else [f"{mechanism.lower()}.{name}", name]
        for one in names:
            for texts in (self._own, self._texts):
                if one in texts:
                    return one, texts[one]
        return None


def build_sasl(listeners: Iterable[str], texts: Mapping[str, str]) -> dict[str, ListenerSasl]:
    """Return the SASL settings of each SASL listener. Raises ConfigError.

    `texts` are all effective settings with given values, by full name.
    """
    return {name: _of_listener(name, ListenerTexts(texts, name)) for name in listeners}


def _of_listener(listener: str, texts: ListenerTexts) -> ListenerSasl:
    given = texts.get(ENABLED_KEY)
    mechanisms = parse_list(GSSAPI if given is None else given[1])
    unknown = [one for one in mechanisms if one not in SUPPORTED]
    if unknown or not mechanisms:
        shown = f"{listener} (SASL): {ENABLED_KEY}"
        raise ConfigError(shown, ",".join(mechanisms), f"one or more of {', '.join(SUPPORTED)}")
    for name in _CALLBACKS:
        for mechanism in mechanisms:
            found = texts.get(name, mechanism)
            if found is not None and not _is_known_class(name, mechanism, found[1].strip()):
                raise ConfigError(f"listener.name.{listener.lower()}: {found[0]}", found[1], "no class: none is loaded")
    plain_users = _plain_users(listener, texts) if PLAIN in mechanisms else {}
    for mechanism in SCRAM:
        if mechanism in mechanisms:
            login_module(listener, texts, mechanism)
    bearer = None
    if OAUTHBEARER in mechanisms:
        module = login_module(listener, texts, OAUTHBEARER)
        bearer = build_bearer(listener, texts, {} if module is None else module.options)
    kerberos = None
    if GSSAPI in mechanisms:
        module = login_module(listener, texts, GSSAPI)
        kerberos = build_kerberos(listener, texts, None if module is None else module.options)
    return ListenerSasl(
        mechanisms, plain_users, {one: _max_reauth_ms(listener, texts, one) for one in mechanisms}, bearer, kerberos
    )


def _is_known_class(name: str, mechanism: str, text: str) -> bool:
    """Return whether a class is absent, or one whose behaviour this version has; that of HANDLER is checked later."""
    if mechanism == OAUTHBEARER and name == LOGIN_HANDLER:
        return text in ("", *LOGIN_HANDLERS)
    return not text or (name, mechanism) == (HANDLER, OAUTHBEARER)


def _plain_users(listener: str, texts: ListenerTexts) -> dict[str, str]:
    module = login_module(listener, texts, PLAIN)
    options = {} if module is None else module.options
    users = {name.removeprefix(_USER): text for name, text in options.items() if name.startswith(_USER)}
    if not users:
        example = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
        raise ConfigError(
            f"listener.name.{listener.lower()}.plain.{JAAS_KEY}",
            "[hidden]" if options else "",
            f"users, as in {example}",
        )
    return users


def login_module(listener: str, texts: ListenerTexts, mechanism: str) -> LoginModule | None:
    """Return the login module for a mechanism; None where the key is not given. SCRAM does not need one.

    Raises ConfigError.
    """
    found = texts.get(JAAS_KEY, mechanism)
    if found is None or not found[1].strip():
        return None
    name = f"listener.name.{listener.lower()}: {found[0]}"
    try:
        modules = parse_jaas(found[1])
    except JaasError as error:
        raise ConfigError(name, "[hidden]", f"a JAAS configuration: {error}") from None
    if len(modules) != 1:
        raise ConfigError(name, "[hidden]", f"one login module, not {len(modules)}")
    wanted = _MODULES[mechanism]
    if modules[0].name.rpartition(".")[2] != wanted:
        if found[0] == JAAS_KEY:
            return None  # It is the module of another mechanism.
        raise ConfigError(name, modules[0].name, f"the {wanted} of {mechanism}")
    return modules[0]


def _max_reauth_ms(listener: str, texts: ListenerTexts, mechanism: str) -> int:
    found = texts.get(REAUTH_KEY, mechanism)
    if found is None:
        return 0
    try:
        value = int(found[1])
    except ValueError:
        value = -1
    if value < 0:
        raise ConfigError(f"listener.name.{listener.lower()}: {found[0]}", found[1], "milliseconds, 0 for never")
    return value
