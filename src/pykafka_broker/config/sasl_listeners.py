"""The SASL of a listener: its mechanisms, their logins and their limits.

A key of a listener is looked up as `listener.name.<listener>.<key>`, then as `<key>`. Before a key of a
mechanism stands its name in lower case: `listener.name.<listener>.<mechanism>.sasl.jaas.config`. The login of
a server is read only there, as in Apache Kafka; JAAS files (`java.security.auth.login.config`) are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pykafka_broker.config.keys import ConfigError, code_for_java
from pykafka_broker.config.listeners import Endpoint
from pykafka_broker.config.oauth_listeners import HANDLER, OAuthSettings, oauth_settings
from pykafka_broker.config.typed_values import TypedValues
from pykafka_broker.sasl.jaas import LoginModule, parse_jaas
from pykafka_broker.sasl.oauth_bearer import OAUTHBEARER
from pykafka_broker.sasl.oauth_login import LOGIN_HANDLER, OAuthLogin, oauth_login

#: Mechanism -> its login module in Apache Kafka.
LOGIN_MODULES: Mapping[str, str] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_PACKAGE = "org.apache.kafka.common.security"
#: Key -> Apache Kafka's default handler. The one for SCRAM cannot be configured.
_OWN_HANDLERS: Mapping[str, str] = {
    HANDLER: f"{_PACKAGE}.plain.internals.PlainServerCallbackHandler",
    LOGIN_HANDLER: f"{_PACKAGE}.authenticator.AbstractLogin$DefaultLoginCallbackHandler",
}
_REASONS = {
    "GSSAPI": "Kerberos needs a library of the system and a key table, which this broker does not read"
}


@dataclass(frozen=True, slots=True)
class MechanismSettings:
    """One mechanism of one listener."""

    login: LoginModule
    #: `connections.max.reauth.ms`.
    max_reauth_ms: int
    #: Settings of OAUTHBEARER; None for other mechanisms.
    oauth: OAuthSettings | None = None


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """The SASL of one listener."""

    #: Mechanisms by name, in the order of `sasl.enabled.mechanisms`.
    mechanisms: Mapping[str, MechanismSettings]
    #: `sasl.server.max.receive.size`.
    max_receive_bytes: int


def check_sasl(values: TypedValues, listeners: Iterable[Endpoint], inter_broker: str) -> None:
    """Check the listeners with SASL; `inter_broker` is the listener that brokers use.

    Raises:
        ConfigError: see `sasl_settings`; or the mechanism of brokers is not enabled on their listener.
    """
    for listener in listeners:
        if not listener.security_protocol.startswith("SASL_"):
            continue
        prefix = f"listener.name.{listener.name.lower()}."
        if listener.name == inter_broker and values.values[
            "sasl.mechanism.inter.broker.protocol"
        ] not in _value(values, prefix, "sasl.enabled.mechanisms"):
            raise ConfigError(
                "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL "
                "is used for inter-broker communication"
            )
        sasl_settings(values, listener.name)


def sasl_settings(values: TypedValues, listener: str) -> SaslSettings:
    """The SASL of `listener`.

    Raises:
        ConfigError: it has no mechanism, an unsupported one, or one whose login cannot be read.
    """
    prefix = f"listener.name.{listener.lower()}."
    enabled: tuple[str, ...] = _value(values, prefix, "sasl.enabled.mechanisms")
    if not enabled:
        raise ConfigError(f"Listener {listener}: no SASL mechanisms are enabled")
    return SaslSettings(
        {mechanism: _mechanism(values, listener, prefix, mechanism) for mechanism in enabled},
        _value(values, prefix, "sasl.server.max.receive.size"),
    )


@dataclass(frozen=True, slots=True)
class NodeUser:
    """The user with which a node connects to other nodes by PLAIN or SCRAM."""

    name: str
    password: str = field(repr=False)


def node_login(values: TypedValues, listener: str, mechanism: str) -> NodeUser | OAuthLogin:
    """The login with which a node connects to `listener` of other nodes.

    Raises:
        ConfigError: the login of the mechanism cannot be read, or has no user or no source of tokens.
    """
    prefix = f"listener.name.{listener.lower()}."
    options = _mechanism(values, listener, prefix, mechanism).login.options
    if mechanism == OAUTHBEARER:
        try:
            return oauth_login(_values_of(values, prefix, mechanism), options)
        except ValueError as error:
            raise ConfigError(
                f"Nodes connect to each other on listener {listener} with {mechanism}, and need tokens: "
                f"{error}"
            ) from None
    user, password = options.get("username"), options.get("password")
    if user is None or password is None:
        key = f"{prefix}{mechanism.lower()}.sasl.jaas.config"
        raise ConfigError(f"{key} needs username and password: as this user the node connects to other nodes")
    return NodeUser(user, password)


def _mechanism(values: TypedValues, listener: str, prefix: str, mechanism: str) -> MechanismSettings:
    if mechanism not in LOGIN_MODULES:
        reason = _REASONS.get(mechanism)
        raise ConfigError(
            f"Listener {listener} asks for the SASL mechanism {mechanism}, which is not served"
            f"{f': {reason}' if reason else ''}. sasl.enabled.mechanisms may name "
            f"{', '.join(LOGIN_MODULES)}"
        )
    key = f"{prefix}{mechanism.lower()}.sasl.jaas.config"
    text = values.values.get(key)
    if text is None:
        without_prefix = _value(values, prefix, "sasl.jaas.config")
        raise ConfigError(
            f"Listener {listener} has no login for the SASL mechanism {mechanism}: set {key}, for instance "
            f"to {LOGIN_MODULES[mechanism]} required ...;"
            + ("" if without_prefix is None else " (sasl.jaas.config without this prefix is ignored)")
        )
    try:
        entries = parse_jaas(text)
    except ValueError as error:
        raise ConfigError(f"{key}: {error}") from None
    if len(entries) != 1:
        raise ConfigError(
            f"{key}: JAAS config property contains {len(entries)} login modules, should be 1 module"
        )
    [login] = entries
    if login.class_name not in LOGIN_MODULES.values():
        raise ConfigError(f"{key} names a login module that this broker does not know")

    value = _values_of(values, prefix, mechanism)
    max_reauth_ms = value("connections.max.reauth.ms")
    if mechanism == OAUTHBEARER:
        return MechanismSettings(login, max_reauth_ms, oauth_settings(value, login, listener))
    for handler, own in _OWN_HANDLERS.items():
        is_own = value(handler) == own and (mechanism == "PLAIN" or handler == LOGIN_HANDLER)
        if value(handler) is not None and not is_own:
            raise code_for_java(listener, handler)
    return MechanismSettings(login, max_reauth_ms)


def _values_of(values: TypedValues, prefix: str, mechanism: str) -> Callable[[str], Any]:
    """Returns the value of a key for a mechanism of a listener."""

    def value(name: str) -> Any:
        own = values.values.get(f"{prefix}{mechanism.lower()}.{name}")
        return _value(values, prefix, name) if own is None else own

    return value


def _value(values: TypedValues, prefix: str, name: str) -> Any:
    own = values.values.get(prefix + name)
    return values.values[name] if own is None else own
