"""Values that come from files, folders and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.providers import resolved
from pykafka_broker.config.sources import load_config

PACKAGE = "org.apache.kafka.common.config.provider"
ENVIRONMENT = {"NAME": "of the environment", "OTHER": "x"}


def providers(**params: str) -> dict[str, str]:
    """All three; `params` are as `file_allowed_paths`."""
    return {
        "config.providers": "file,env,dir",
        "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
        "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
        "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
        **{
            f"config.providers.{name.replace('_', '.param.', 1).replace('_', '.')}": value
            for name, value in params.items()
        },
    }


def value(text: str, **params: str) -> str:
    return resolved({**providers(**params), "key": text}, ENVIRONMENT)["key"]


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "kafka.properties").write_text("password=s3cret\nother = a b\n")
    (tmp_path / "token").write_text("a token\n")
    return tmp_path


def test_a_value_comes_from_a_file_a_folder_and_the_environment(secrets: Path) -> None:
    file = secrets / "kafka.properties"
    assert value(f"<${{file:{file}:password}}, ${{file:{file}:other}}>") == "<s3cret, a b>"
    assert value(f"${{dir:{secrets}:token}}") == "a token\n"
    assert value("${env:NAME}") == "of the environment"


@pytest.mark.parametrize("text", ["${env:NONE}", "${unknown:NAME}", "${NAME}", "${file:key}", "$env:NAME"])
def test_what_there_is_not_stays_as_it_is_written(text: str) -> None:
    assert value(text) == text


def test_the_log_names_what_there_is_not(secrets: Path, caplog: pytest.LogCaptureFixture) -> None:
    variable = f"${{file:{secrets / 'kafka.properties'}:missing}}"
    assert value(variable) == variable
    assert f"key: there is no value for the variable {variable}" in caplog.text


def test_only_allowed_paths_and_names_are_read(secrets: Path) -> None:
    file, other = secrets / "kafka.properties", secrets / "allowed"
    other.mkdir()
    inside = f"${{file:{file}:password}}"
    assert value(inside, file_allowed_paths=str(secrets)) == "s3cret"
    assert value(inside, file_allowed_paths=str(other)) == inside
    outside = f"${{file:{other}/../kafka.properties:password}}"
    assert value(outside, file_allowed_paths=str(other)) == outside
    folder = f"${{dir:{secrets}:token}}"
    assert value(folder, dir_allowed_paths=str(other)) == folder
    assert value(f"${{dir:{other}:../token}}") == f"${{dir:{other}:../token}}"
    assert value("${env:NAME} ${env:OTHER}", env_allowlist_pattern="N.*") == "of the environment ${env:OTHER}"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"config.providers.file.class": "com.example.Vault"}, "Could not load config provider class"),
        ({"config.providers.env.param.allowlist.pattern": "("}, "is no regular expression"),
        ({"config.providers.file.param.allowed.paths": "relative"}, "Path relative is not absolute"),
        ({"config.providers.file.param.allowed.paths": "/no/such"}, "Path /no/such does not exist"),
        ({"key": "${env:/path:NAME}"}, "Path is not supported for EnvVarConfigProvider"),
        ({"key": "${file:/no/such:key}"}, "Could not read properties from file /no/such"),
    ],
)
def test_what_cannot_be_asked_is_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        resolved({**providers(), **settings}, ENVIRONMENT)


def test_a_configuration_has_the_values(secrets: Path) -> None:
    file = secrets / "kafka.properties"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    config = load_config(
        overrides={
            **providers(),
            "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f'{login} user_alice="${{file:{file}:password}}";'
            ),
        }
    )
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    assert config.values[name] == f'{login} user_alice="s3cret";'
    assert "s3cret" not in repr(config.values)


def test_the_keys_of_providers_are_known_and_those_of_others_are_not(secrets: Path) -> None:
    """Every start with a provider had warned of them."""
    named = {**providers(file_allowed_paths=str(secrets)), "config.providers.vault.class": "my.Provider"}
    assert load_config(overrides=named).unknown == ["config.providers.vault.class"]
