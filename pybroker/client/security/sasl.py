"""From `sasl.*` settings to a client's credentials.

Owns the settings of user and password, and Kafka's login modules. The mechanisms are native
(`native/secure/src/sasl`). Messages never contain passwords or tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.client import native
from pybroker.client.errors import SettingError
from pybroker.client.security import kerberos
from pybroker.client.security.bearer import open_bearer
from pybroker.config.security.jaas import JaasError, parse_jaas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.client.settings.security import SecuritySettings

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": kerberos.MODULE,
}


def open_credentials(settings: SecuritySettings) -> native.SaslCredentials:
    """Create the credentials that the settings define. Raises SettingError."""
    mechanism = settings.mechanism
    options = _options(settings, mechanism)
    if mechanism == "OAUTHBEARER":
        return open_bearer(settings, options)
    if mechanism == "GSSAPI":
        return kerberos.open_kerberos(settings, options)
    username = options.get("username", settings.sasl_username)
    password = options.get("password", settings.sasl_password)
    if not username or password is None:
        missing = "username" if not username else "password"
        raise SettingError(
            f"sasl.mechanism={mechanism} needs a {missing}: in sasl.jaas.config (a {_MODULES[mechanism]} with "
            f"username and password), or as sasl.{missing}"
        )
    if "\0" in username + password:
        raise SettingError("sasl.username and sasl.password: the character NUL cannot be sent")
    if mechanism == "PLAIN":
        return native.SaslCredentials.plain(username, password)
    return native.SaslCredentials.scram(
        mechanism, username, password, is_token=options.get("tokenauth", "").lower() == "true"
    )


def _options(settings: SecuritySettings, mechanism: str) -> Mapping[str, str]:
    if settings.sasl_jaas_config is None:
        return {}
    try:
        modules = parse_jaas(settings.sasl_jaas_config)
    except JaasError as error:
        raise SettingError(f"sasl.jaas.config: {error}") from None
    if len(modules) != 1:
        raise SettingError(f"sasl.jaas.config has {len(modules)} login modules, expected one")
    module = modules[0]
    if module.name != _MODULES[mechanism]:
        raise SettingError(
            f"sasl.jaas.config: sasl.mechanism={mechanism} needs the login module {_MODULES[mechanism]}, instead of "
            f"{module.name}"
        )
    return module.options
