"""Several controllers as nodes: they elect a leader over their listeners, and each has what was committed."""

from __future__ import annotations

import re

import pytest

from pykafka_broker.broker.formatting import NewCluster
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.controller.core.events import (
    ConfigChange,
    ConfigOperation,
    FeatureUpdate,
    IncrementalAlterConfigs,
    UpdateFeatures,
    UpgradeType,
)
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.raft.format import StorageFormatError
from pykafka_broker.testing.home import Home, until
from tests.support.quorums import Quorum, format_home

NAME = "log.cleaner.backoff.ms"
#: No timeout elects a second controller because this machine is slow.
ELECTED_ONCE = {"controller.quorum.fetch.timeout.ms": "60000"}


async def set_config(quorum: Quorum, leader: int, value: str) -> None:
    """Have the active controller set a config of all brokers."""
    change = ConfigChange(ResourceType.BROKER, "", ((NAME, ConfigOperation.SET, value),))
    [result] = await quorum.broker(leader).node.administration.ask(IncrementalAlterConfigs((change,)))
    assert result.error == 0


def config_of(quorum: Quorum, node_id: int) -> str | None:
    return quorum.broker(node_id).node.image.config(ResourceType.BROKER, "").get(NAME)


async def test_three_controllers_elect_one_and_all_publish_what_it_commits() -> None:
    quorum = Quorum(overrides=ELECTED_ONCE)
    async with quorum.running():
        leader = await quorum.leader()
        await set_config(quorum, leader, "4000")
        await until(lambda: all(config_of(quorum, n) == "4000" for n in quorum.homes))


async def test_the_log_tells_who_leads_and_who_votes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    quorum = Quorum()
    async with quorum.running():
        first = await quorum.leader()
        epoch = quorum.broker(first).node.raft.epoch
        await quorum.broker(first).stop()
        others = [n for n in quorum.homes if n != first]
        second = await quorum.leader(*others)
    told = caplog.text
    assert f"[QuorumController id={first}] Becoming the active controller at epoch {epoch}" in told
    assert f"[RaftManager id={first}] Completed transition to ResignedState(epoch={epoch})" in told
    assert f"[RaftManager id={second}] Completed transition to Leader(epoch=" in told
    assert f"[RaftManager id={others[0]}] Latest set of voters is [1@127.0.0.1:{quorum.ports[1]}, 2@" in told


async def test_a_leader_that_stops_hands_over_and_comes_back_as_a_follower() -> None:
    # It hands over: no timeout elects the next one either.
    quorum = Quorum(overrides=ELECTED_ONCE)
    async with quorum.running():
        first = await quorum.leader()
        await set_config(quorum, first, "4000")
        await quorum.broker(first).stop()
        others = [n for n in quorum.homes if n != first]
        second = await quorum.leader(*others)
        await set_config(quorum, second, "5000")

        await quorum.start(first)

        await until(lambda: config_of(quorum, first) == "5000")
        assert quorum.broker(first).node.raft.leader_id == second


async def test_two_of_three_start_without_the_third_which_catches_up_from_nothing() -> None:
    quorum = Quorum(overrides=ELECTED_ONCE)
    async with quorum.running(1, 2):
        leader = await quorum.leader(1, 2)
        await set_config(quorum, leader, "4000")
        await quorum.start(3)
        await until(lambda: config_of(quorum, 3) == "4000")


async def test_a_voter_that_lost_its_disk_is_given_a_snapshot() -> None:
    quorum = Quorum(overrides={**ELECTED_ONCE, "metadata.log.max.record.bytes.between.snapshots": "1"})
    async with quorum.running():
        leader = await quorum.leader()
        lost = next(n for n in quorum.homes if n != leader)
        await quorum.broker(lost).stop()
        for value in range(4000, 4010):
            await set_config(quorum, leader, str(value))
        quorum.homes[lost] = quorum.home(lost)
        await quorum.start(lost)
        await until(lambda: config_of(quorum, lost) == "4009")


async def test_all_stop_and_start_again_with_what_they_had() -> None:
    quorum = Quorum()
    async with quorum.running():
        await set_config(quorum, await quorum.leader(), "4000")
    async with quorum.running():
        await until(lambda: all(config_of(quorum, n) == "4000" for n in quorum.homes))


@pytest.mark.parametrize(
    ("quorum_key", "explanation"),
    [
        ("controller.quorum.voters", "all nodes of a cluster need the same cluster id"),
        ("controller.quorum.bootstrap.servers", "run `pykafka-broker format` with one of the following"),
    ],
)
async def test_a_start_formats_no_directory_for_a_cluster_it_was_not_told_about(
    quorum_key: str, explanation: str
) -> None:
    overrides = Quorum().homes[1].overrides
    voters = overrides.pop("controller.quorum.voters")
    is_static = quorum_key == "controller.quorum.voters"
    overrides[quorum_key] = voters if is_static else re.sub(r"\d@", "", voters)
    home = Home(overrides, listen=None)
    with pytest.raises(StorageFormatError, match=explanation):
        await home.new_broker().start()
    assert not home.files.exists("/data/meta.properties")


def test_a_controller_with_the_addresses_of_others_is_formatted_only_as_part_of_a_named_quorum() -> None:
    home = Quorum(is_dynamic=True).home(1)
    with pytest.raises(StorageFormatError, match="you must specify one of the following: --standalone"):
        format_home(home, NewCluster())
    assert not home.files.exists("/data/meta.properties")
    format_home(home, NewCluster(standalone=True))
    assert home.files.exists("/data/meta.properties")


async def test_a_feature_is_changed_only_when_every_voter_has_said_that_it_knows_it() -> None:
    quorum = Quorum()
    async with quorum.running(1, 2):
        node = quorum.broker(await quorum.leader(1, 2)).node
        await until(lambda: set(node.image.controllers) == {1, 2})
        change = FeatureUpdate("transaction.version", 1, UpgradeType.SAFE_DOWNGRADE)
        with pytest.raises(
            KafkaError, match="controller 3 has not registered, and may not support this feature"
        ):
            await node.administration.ask(UpdateFeatures((change,)))

        await quorum.start(3)
        await until(lambda: 3 in node.image.controllers)
        leader = quorum.broker(await quorum.leader()).node
        await leader.administration.ask(UpdateFeatures((change,)))
        assert leader.image.features["transaction.version"] == 1
