"""Config providers: values from files, folders and the environment, to keep secrets out of properties files.

    config.providers=file,env,dir
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/run/secrets
    password=${file:/run/secrets/kafka.properties:password}, ${env:NAME} or ${dir:/run/secrets:password}

Variables in every value are replaced once, at the start. A variable that its provider does not have, or that
lies outside of the allowed paths, stays as it is written, as in Apache Kafka, and is logged. Providers of
other classes are refused on purpose.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from os.path import isabs, normpath

from pykafka_broker.config.keys import PROVIDERS, ConfigError
from pykafka_broker.config.properties_file import read_properties

logger = logging.getLogger("kafka.server.KafkaConfig")

_PACKAGE = "org.apache.kafka.common.config.provider."
_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")

#: The value of a key below a path; None if there is none.
Provider = Callable[[str, str], "str | None"]


def resolved(configured: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The values with their variables replaced; `environ` is the environment of the process.

    Raises:
        ConfigError: a provider is none of Apache Kafka's, or cannot read a value.
    """
    providers = _providers(configured, environ)
    if not providers:
        return dict(configured)
    return {key: _VARIABLE.sub(partial(_value, key, providers), text) for key, text in configured.items()}


def check_providers(configured: Mapping[str, str]) -> None:
    """Refuse providers that are none of Apache Kafka's; reads no value.

    Raises:
        ConfigError: a provider is another.
    """
    _providers(configured, {})


def _providers(configured: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, Provider]:
    names = [name for name in configured.get(PROVIDERS, "").split(",") if name]
    classes = {name: configured.get(f"{PROVIDERS}.{name}.class") for name in names}
    return {
        name: _provider(name, class_name, configured, environ)
        for name, class_name in classes.items()
        if class_name is not None
    }


def _value(key: str, providers: Mapping[str, Provider], variable: re.Match[str]) -> str:
    name, path, wanted = variable.groups()
    provider = providers.get(name)
    if provider is None:
        return variable[0]
    value = provider(path or "", wanted)
    if value is None:
        logger.warning("%s: there is no value for the variable %s", key, variable[0])
        return variable[0]
    return value


def _provider(
    name: str, class_name: str, configured: Mapping[str, str], environ: Mapping[str, str]
) -> Provider:
    param = f"{PROVIDERS}.{name}.param."
    kind = class_name.removeprefix(_PACKAGE)
    if kind == "EnvVarConfigProvider":
        pattern = configured.get(f"{param}allowlist.pattern", ".*")
        try:
            return partial(_of_environment, environ, re.compile(pattern))
        except re.error as error:
            raise ConfigError(f"{param}allowlist.pattern is no regular expression: {error}") from None
    allowed = _allowed_paths(configured.get(f"{param}allowed.paths", ""))
    if kind == "FileConfigProvider":
        return partial(_of_file, cache(_properties), allowed)
    if kind == "DirectoryConfigProvider":
        return partial(_of_directory, allowed)
    raise ConfigError(
        f"Invalid value {class_name} for configuration {PROVIDERS}.{name}.class: Could not load config "
        "provider class or one of its dependencies"
    )


def _of_environment(environ: Mapping[str, str], pattern: re.Pattern[str], path: str, key: str) -> str | None:
    if path:
        raise ConfigError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
    return environ.get(key) if pattern.fullmatch(key) else None


def _of_file(
    properties: Callable[[str], Mapping[str, str]], allowed: tuple[str, ...], path: str, key: str
) -> str | None:
    return properties(path).get(key) if path and _is_allowed(path, allowed) else None


def _properties(path: str) -> Mapping[str, str]:
    try:
        return read_properties(path)
    except OSError:
        raise ConfigError(f"Could not read properties from file {path}") from None


def _of_directory(allowed: tuple[str, ...], path: str, key: str) -> str | None:
    if not path or "/" in key or not _is_allowed(path, allowed):
        return None
    file = os.path.join(path, key)
    if not os.path.isfile(file):
        return None
    try:
        with open(file, "rb") as content:
            return content.read().decode("utf-8", "replace")
    except OSError:
        raise ConfigError(f"Could not read file {file} for property {key}") from None


def _allowed_paths(text: str) -> tuple[str, ...]:
    paths = tuple(normpath(path) for path in text.split(",") if path)
    for path in paths:
        if not isabs(path):
            raise ConfigError(f"Path {path} is not absolute")
        if not os.path.exists(path):
            raise ConfigError(f"Path {path} does not exist")
    return paths


def _is_allowed(path: str, allowed: tuple[str, ...]) -> bool:
    """Whether a path lies in one of `allowed`; every path does if that is empty."""
    normal = normpath(path)
    return not allowed or any(f"{normal}/".startswith(each.rstrip("/") + "/") for each in allowed)
