"""`tokens`, and what Apache's own command says of the same tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.cli.tokens import Changed, Token
from pykafka_broker.testing.apache.tools import ToolError, run_tool
from tests.cli.conftest import Run, RunningBroker, run_command
from tests.cli.test_json import check, json_option_of

MODULES = "org.apache.kafka.common.security"
SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.clients.plain.sasl.jaas.config": (
        f'{MODULES}.plain.PlainLoginModule required user_alice="alice-secret" user_bob="bob-secret";'
    ),
    "listener.name.clients.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    "delegation.token.secret.key": "the key",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with tokens, on whose listener alice and bob log in."""
    overrides = [f"{key}={value}" for key, value in SETTINGS.items()]
    with RunningBroker(tmp_path_factory.mktemp("data"), None, overrides) as broker:
        yield broker.address


def properties(folder: Path, mechanism: str, module: str, user: str, password: str, more: str = "") -> str:
    file = folder / f"{user}.properties"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={MODULES}.{module} required username="{user}" password="{password}"{more};\n'
    )
    return str(file)


@pytest.fixture
def of_alice(tmp_path: Path) -> str:
    return properties(tmp_path, "PLAIN", "plain.PlainLoginModule", "alice", "alice-secret")


def of_token(folder: Path, token: Any) -> str:
    module = "scram.ScramLoginModule"
    return properties(folder, "SCRAM-SHA-256", module, token["token_id"], token["hmac"], " tokenauth=true")


@pytest.fixture
def run(address: str, of_alice: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs commands as alice."""
    monkeypatch.setenv("PYKAFKA_BROKER_BOOTSTRAP_SERVER", address)
    monkeypatch.setenv("PYKAFKA_BROKER_COMMAND_CONFIG", of_alice)
    return run_command


def test_a_token_is_created_used_and_removed(run: Callable[..., Any], tmp_path: Path) -> None:
    created = run("tokens", "create", "--renewer", "bob", "--json")
    [token] = json.loads(created.out)["tokens"]
    check(token, Token)
    assert (token["owner"], token["requester"]) == ("User:alice", "User:alice")
    assert token["renewers"] == ["User:bob"]
    assert json.loads(run("tokens", "describe", "--owner", "bob", "--json").out)["tokens"] == [token]

    with_token = ("--command-config", of_token(tmp_path, token))
    assert run("topics", "create", "of-a-job", *with_token).out == "Created topic of-a-job.\n"
    refused = run("tokens", "create", *with_token)
    assert (refused.status, refused.out) == (1, "")

    renewed = json.loads(run("tokens", "renew", token["hmac"], "--period-ms", "60000", "--json").out)
    check(renewed, Changed)
    assert renewed["expiry_timestamp_ms"] < token["expiry_timestamp_ms"]
    expired = run("tokens", "expire", "-", stdin=token["hmac"].encode() + b"\n")
    assert re.fullmatch(r"Completed expire operation. New expiry timestamp : [-0-9T:]{16}\n", expired.out)
    assert json.loads(run("tokens", "describe", "--json").out)["tokens"] == []
    assert run("topics", "list", *with_token).status == 1


def test_a_token_for_somebody_else(run: Callable[..., Any]) -> None:
    created = run("tokens", "create", "--owner", "User:carol", "--max-lifetime-ms", "5000", "--json")
    [token] = json.loads(created.out)["tokens"]
    assert (token["owner"], token["requester"]) == ("User:carol", "User:alice")
    assert token["max_timestamp_ms"] - token["issue_timestamp_ms"] == 5_000
    described = run("tokens", "describe", "--owner", "carol").out.splitlines()
    assert [line.split()[0] for line in described] == ["TOKENID", token["token_id"]]


def test_what_is_no_hmac_is_not_quoted(run: Callable[..., Any]) -> None:
    refused = run("tokens", "renew", "a secret!")
    assert refused.status == 2
    assert "the HMAC is not in base64" in refused.err
    assert "a secret!" not in refused.err
    unknown = run("tokens", "renew", "c2VjcmV0")
    assert (unknown.status, unknown.out) == (1, "")


def test_every_command_says_what_its_json_is() -> None:
    for verb, result in (("create", Token), ("describe", Token), ("renew", Changed), ("expire", Changed)):
        assert json_option_of(f"tokens {verb}").result is result


@pytest.mark.slow
def test_apaches_command_does_its_work(address: str, of_alice: str, tmp_path: Path) -> None:
    def tool(*words: str, config: str = of_alice, **how: Any) -> str:
        main = "org.apache.kafka.tools.DelegationTokenCommand"
        return run_tool(main, "--bootstrap-server", address, "--command-config", config, *words, **how)

    created = tool("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    found = re.search(r"Created delegation token with tokenId : (\S+)", created)
    assert found is not None, created
    described = tool("--describe", "--owner-principal", "User:alice")
    [row] = [line.split() for line in described.splitlines() if line.startswith(found[1])]
    token = {"token_id": row[0], "hmac": row[1]}
    assert row[2:5] == ["User:alice", "User:alice", "[User:bob]"]
    assert "Completed renew operation" in tool(
        "--renew", "--renew-time-period", "-1", "--hmac", token["hmac"]
    )

    listed = run_tool(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", address, "--list", "--command-config", of_token(tmp_path, token)),
    )
    assert "Exception" not in listed
    with pytest.raises(ToolError, match="not allowed on"):
        tool("--create", "--max-life-time-period", "-1", config=of_token(tmp_path, token))

    assert "Completed expire operation" in tool(
        "--expire", "--expiry-time-period", "-1", "--hmac", token["hmac"]
    )
    assert token["token_id"] not in tool("--describe")
