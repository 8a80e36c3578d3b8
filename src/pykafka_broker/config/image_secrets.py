"""Key stores and passwords that the environment of the apache/kafka image names as mounted files."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.config.keys import ConfigError

#: The folder of the files in the image.
SECRETS_DIR = "/etc/kafka/secrets"

#: The variables whose value is the name of a store, and the keys that take its path.
STORES = {
    "KAFKA_SSL_KEYSTORE_FILENAME": "ssl.keystore.location",
    "KAFKA_SSL_TRUSTSTORE_FILENAME": "ssl.truststore.location",
}
#: The variables whose value is the name of a file with a password, and the keys that take the password.
CREDENTIALS = {
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "ssl.keystore.password",
    "KAFKA_SSL_KEY_CREDENTIALS": "ssl.key.password",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "ssl.truststore.password",
}


def secrets_of_image(environ: Mapping[str, str], folder: str = SECRETS_DIR) -> dict[str, str]:
    """The settings that these variables make.

    Raises:
        ConfigError: a file with a password cannot be read.
    """
    settings = {key: f"{folder}/{environ[name]}" for name, key in STORES.items() if environ.get(name)}
    for name, key in CREDENTIALS.items():
        if environ.get(name):
            # As in a shell, line ends at the end of the file are not part of the password.
            settings[key] = _text_of(f"{folder}/{environ[name]}", name).rstrip("\n")
    return settings


def _text_of(path: str, variable: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{variable}: {path} cannot be read: {error}") from None
