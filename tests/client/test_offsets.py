"""Committing from outside of a group, to a broker that has to make its topic of offsets first."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import (
    EARLIEST,
    LATEST,
    commit_until_done,
    committed_offsets,
    list_offsets,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.cli.conftest import RunningBroker, run_command


def test_offsets_are_committed_as_soon_as_there_is_a_coordinator(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as broker:
        assert run_command("produce", "t", "a", "b", "-b", broker.address).status == 0
        with Client(broker.address, 30.0) as client:
            commit_until_done(client, "g", {("t", 0): 1}, "from outside")
            assert committed_offsets(client, client.coordinator("g"), "g") == {("t", 0): 1}
            assert list_offsets(client, {("t", 0): EARLIEST}) == {("t", 0): 0}
            assert list_offsets(client, {("t", 0): LATEST}) == {("t", 0): 2}


def test_what_stays_wrong_is_an_error_at_once(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as broker, Client(broker.address, 30.0) as client:
        with pytest.raises(KafkaError) as error:
            commit_until_done(client, "g", {("t", 0): 1})
        assert error.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError, match="Topic 'u' does not exist"):
            list_offsets(client, {("u", 0): LATEST})
        assert run_command("topics", "create", "v", "-b", broker.address).status == 0
        with pytest.raises(KafkaError, match="Topic 'v' has no partition 7"):
            list_offsets(client, {("v", 7): LATEST})
        assert list_offsets(client, {("u", 0): LATEST}, missing_ok=True) == {}
