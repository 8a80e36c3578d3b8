"""How a command is secured: Kafka's `--command-config` file, and the short forms `--user` and `--ca`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import click

from pykafka_broker.client.core.connection import Identity
from pykafka_broker.system.named_tuple import NamedTuple

Command = TypeVar("Command", bound=Callable[..., Any])

PASSWORD_VARIABLE = "PYKAFKA_BROKER_PASSWORD"


class Credentials(NamedTuple):
    """The values of the options."""

    command_config: str | None = None
    login: str | None = None
    ca: str | None = None

    def __repr__(self) -> str:
        """The fields without the login, which may have a password."""
        return f"Credentials({self.command_config!r})"


def security_options(command: Command, login_flag: str = "--user") -> Command:
    """Give a command the options `command_config`, `login` and `ca`: those of `Credentials`."""
    command = click.option(
        "--ca",
        metavar="FILE",
        envvar="PYKAFKA_BROKER_CA",
        show_envvar=True,
        type=click.Path(exists=True, dir_okay=False),
        help="Connect with TLS to brokers whose certificates these sign (PEM).",
    )(command)
    command = click.option(
        login_flag,
        "login",
        metavar="NAME[:PASSWORD]",
        envvar="PYKAFKA_BROKER_USER",
        show_envvar=True,
        help="Authenticate as this user, with the strongest of SCRAM and PLAIN that the broker offers, or "
        "the sasl.mechanism of --command-config. "
        f"A password that is not given is taken from {PASSWORD_VARIABLE}, or asked for.",
    )(command)
    return click.option(
        "--command-config",
        metavar="FILE",
        envvar="PYKAFKA_BROKER_COMMAND_CONFIG",
        show_envvar=True,
        type=click.Path(exists=True, dir_okay=False),
        help="Properties of a Kafka client: security.protocol, sasl.* and ssl.*.",
    )(command)


@lru_cache(maxsize=8)
def identity_with(
    identity: Identity, command_config: str | None, login: str | None, ca: str | None
) -> Identity:
    """`identity`, secured as the options say.

    Raises:
        click.ClickException: they make no sense, or a file cannot be read.
    """
    if command_config is None and login is None and ca is None:
        return identity
    from pykafka_broker.client.security import login_of, security_of

    properties = _properties(command_config, ca)
    user = None
    if login is not None:
        user = login_of(*_credentials(login), properties.get("sasl.mechanism"))
        with_tls = properties["security.protocol"].endswith("SSL")
        properties["security.protocol"] = "SSL" if with_tls else "PLAINTEXT"
    try:
        found = security_of(properties)
    except (ValueError, OSError) as error:
        raise click.ClickException(f"{command_config or ca}: {error}") from None
    return identity._replace(security=found if user is None else found._replace(login=user))


def prefers_tls(command_config: str | None, ca: str | None) -> bool:
    """Whether these options ask for TLS; False if the file cannot be read."""
    try:
        return _properties(command_config, ca)["security.protocol"].endswith("SSL")
    except click.ClickException:
        return False


def client_properties(
    mechanism: str | None, command_config: str | None, login: str | None, ca: str | None
) -> dict[str, str]:
    """The same security in the keys of Kafka's clients, for programs with a client of their own.

    Args:
        mechanism: The mechanism with which the user logs in; the broker must offer it.
        command_config: As the option.
        login: As the option.
        ca: As the option; the certificate itself is included, because the program may run elsewhere.

    Raises:
        click.ClickException: a file cannot be read.
    """
    properties = _properties(command_config, ca)
    if ca is not None:
        del properties["ssl.truststore.location"]
        with open(ca) as file:
            properties["ssl.truststore.certificates"] = file.read()
    if login is not None and mechanism is not None:
        user, password = (text.replace("\\", r"\\").replace('"', r"\"") for text in _credentials(login))
        module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
        with_tls = properties["security.protocol"].endswith("SSL")
        properties |= {
            "security.protocol": "SASL_SSL" if with_tls else "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"org.apache.kafka.common.security.{module}LoginModule required "
            f'username="{user}" password="{password}";',
        }
    secure = ("security.protocol", "sasl.", "ssl.")
    found = {key: value for key, value in properties.items() if key.startswith(secure)}
    return {} if found == {"security.protocol": "PLAINTEXT"} else found


def _properties(command_config: str | None, ca: str | None) -> dict[str, str]:
    """The properties of the file and of the authority; always with a security protocol."""
    properties = {"security.protocol": "PLAINTEXT"}
    if command_config is not None:
        properties |= _read(command_config)
    if ca is not None:
        with_login = properties["security.protocol"].startswith("SASL")
        properties |= {
            "security.protocol": "SASL_SSL" if with_login else "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": ca,
        }
    return properties


@lru_cache(maxsize=8)
def _credentials(login: str) -> tuple[str, str]:
    """The user and the password, which is asked for once if it is not given."""
    name, colon, password = login.partition(":")
    return name, password if colon else _password(name)


def _read(file: str) -> dict[str, str]:
    from pykafka_broker.config.keys import ConfigError
    from pykafka_broker.config.properties_file import read_properties
    from pykafka_broker.config.providers import resolved

    try:
        return resolved(read_properties(file), os.environ)
    except (ConfigError, OSError) as error:
        raise click.ClickException(f"{file}: {error}") from None


def _password(user: str) -> str:
    password = os.environ.get(PASSWORD_VARIABLE)
    if password is None:
        password = click.prompt(f"Password of {user}", hide_input=True, err=True)
    return str(password)
