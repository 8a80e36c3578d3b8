"""Key stores by the variables of the apache/kafka image."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.config.image_secrets import SECRETS_DIR, secrets_of_image
from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.sources import read_environment


def test_stores_and_passwords_are_files_of_the_mounted_folder(tmp_path: Path) -> None:
    (tmp_path / "store_credentials").write_text("of the store\n")
    (tmp_path / "key_credentials").write_text(" of the key \n\n")
    environ = {
        "KAFKA_SSL_KEYSTORE_FILENAME": "server.jks",
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": "store_credentials",
        "KAFKA_SSL_KEY_CREDENTIALS": "key_credentials",
        "KAFKA_SSL_TRUSTSTORE_FILENAME": "ca.jks",
        "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "store_credentials",
    }

    assert secrets_of_image(environ, str(tmp_path)) == {
        "ssl.keystore.location": f"{tmp_path}/server.jks",
        "ssl.keystore.password": "of the store",
        "ssl.key.password": " of the key ",
        "ssl.truststore.location": f"{tmp_path}/ca.jks",
        "ssl.truststore.password": "of the store",
    }


def test_a_file_with_a_password_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=f"KAFKA_SSL_KEY_CREDENTIALS: {SECRETS_DIR}/gone cannot be read: "):
        read_environment({"KAFKA_SSL_KEY_CREDENTIALS": "gone"})


def test_the_variables_are_no_keys_by_their_names() -> None:
    settings = read_environment(
        {"KAFKA_SSL_KEYSTORE_FILENAME": "server.jks", "KAFKA_SSL_KEY_CREDENTIALS": ""}
    )

    assert settings == {"ssl.keystore.location": f"{SECRETS_DIR}/server.jks"}
