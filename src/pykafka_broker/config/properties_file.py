"""The properties files of Java."""

from __future__ import annotations

import os

from pykafka_broker.config.keys import ConfigError


def read_properties(path: str | os.PathLike[str]) -> dict[str, str]:
    """The settings of a Java properties file.

    Raises:
        ConfigError: the file is no properties file.
        OSError: it cannot be read.
    """
    # Imported here because that is slow and only a start with a properties file needs it.
    import javaproperties

    with open(path, encoding="utf-8") as file:
        try:
            return dict(javaproperties.load(file))
        except (UnicodeDecodeError, javaproperties.InvalidUEscapeError) as error:
            raise ConfigError(f"{path} is not a properties file: {error}") from None
