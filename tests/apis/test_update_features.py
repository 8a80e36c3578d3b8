"""UpdateFeatures (57): finalized levels change together or not at all."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pykafka_broker.apis.update_features import update_features
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.support.controllers import combined_home

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
DONE = UpdateFeaturesResponse(error_code=0)
FAILED = "The update failed for all features since the following feature had an error: "


def to(feature: str, level: int, upgrade_type: int = UPGRADE, **fields: Any) -> FeatureUpdateKey:
    return FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type, **fields)


def updating(*updates: FeatureUpdateKey, **fields: Any) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(feature_updates=list(updates), **fields)


async def finalized(user: User) -> dict[str, int]:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = await user.send(request, 4)
    return {feature.name: feature.max_version_level for feature in answer.finalized_features}


async def test_a_level_is_lowered_and_raised_again(user: User) -> None:
    before = await finalized(user)

    lowered = await user.send(updating(to("transaction.version", 0, SAFE_DOWNGRADE)), 2)
    between = await finalized(user)
    raised = await user.send(updating(to("transaction.version", 2)), 2)

    assert lowered == raised == UpdateFeaturesResponse(error_code=0)
    assert between == {name: level for name, level in before.items() if name != "transaction.version"}
    assert await finalized(user) == before


async def test_without_group_version_the_broker_assigns_no_partitions(user: User) -> None:
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    await user.send(updating(to("group.version", 0, UNSAFE_DOWNGRADE)), 2)

    assert (await user.send(joining, 1)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_levels_outlive_a_restart(home: Home) -> None:
    async with home.running() as user:
        await user.send(updating(to("eligible.leader.replicas.version", 0, SAFE_DOWNGRADE)), 2)
        before = await finalized(user)
    async with home.running() as user:
        assert await finalized(user) == before
        assert "eligible.leader.replicas.version" not in before


async def test_the_voters_of_the_configuration_are_moved_into_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    static = {"controller.quorum.bootstrap.servers": "", "controller.quorum.voters": "1@localhost:9093"}
    home = combined_home(static)
    async with home.running() as user:
        before = home.broker.node.raft.describe_quorum()
        assert "kraft.version" not in await finalized(user)
        assert [voter.key.directory_id for voter in before.status.voters] == [bytes(16)]

        assert await user.send(updating(to("kraft.version", 1), validate_only=True), 2) == DONE
        assert "kraft.version" not in await finalized(user)
        assert await user.send(updating(to("kraft.version", 1)), 2) == DONE
        assert (await finalized(user))["kraft.version"] == 1
        assert [text for text in caplog.messages if "kraft.version" in text] == [
            "[QuorumController id=1] Set feature kraft.version from 0 to 1, "
            "as User:ANONYMOUS at 127.0.0.1 asked."
        ]
        after = home.broker.node.raft.describe_quorum()
        directory_id = home.broker.node.logs.dirs.metadata.directory_id
        assert [voter.key.directory_id for voter in after.status.voters] == [directory_id]

        lowered = await user.send(updating(to("kraft.version", 0, SAFE_DOWNGRADE)), 2)
        assert lowered.error_code == ErrorCode.INVALID_UPDATE_VERSION
    home.overrides["controller.quorum.voters"] = ""
    home.overrides["controller.quorum.bootstrap.servers"] = "localhost:9093"
    async with home.running() as user:
        assert (await finalized(user))["kraft.version"] == 1


@pytest.mark.parametrize("version", every(update_features))
async def test_older_versions_have_a_result_for_each_feature(user: User, version: int) -> None:
    answer = await user.send(updating(to("transaction.version", 2), to("group.version", 1)), version)

    names = ["transaction.version", "group.version"] if version < 2 else []
    assert answer == UpdateFeaturesResponse(
        error_code=0,
        results=[UpdatableFeatureResult(feature=name, error_code=0, error_message="NONE") for name in names],
    )


@pytest.mark.parametrize("version", every(update_features))
async def test_a_request_for_nothing_changes_nothing(user: User, version: int) -> None:
    assert await user.send(updating(), version) == UpdateFeaturesResponse(error_code=0)


@pytest.mark.parametrize("version", every(update_features))
async def test_one_wrong_update_is_the_end_of_all(user: User, version: int) -> None:
    before = await finalized(user)

    answer = await user.send(updating(to("group.version", 1), to("nonsense", 1)), version)

    assert answer == UpdateFeaturesResponse(
        error_code=int(ErrorCode.INVALID_UPDATE_VERSION),
        error_message=f"{FAILED}Invalid update version 1 for feature nonsense. "
        "Local controller 1 does not support this feature.",
    )
    assert await finalized(user) == before


@pytest.mark.parametrize("version", [1, 2])
async def test_validation_alone_changes_nothing(user: User, version: int) -> None:
    before = await finalized(user)
    lowering = updating(to("group.version", 0, SAFE_DOWNGRADE), validate_only=True)

    assert (await user.send(lowering, version)).error_code == 0
    assert await finalized(user) == before


async def test_the_oldest_version_cannot_lower_a_level(user: User) -> None:
    answer = await user.send(updating(to("group.version", 0, allow_downgrade=True)), 0)

    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message.endswith("to either safe or unsafe downgrade.")


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_the_timeout_of_the_request_does_not_matter(user: User, timeout_ms: int) -> None:
    assert (await user.send(updating(to("group.version", 1), timeout_ms=timeout_ms), 2)).error_code == 0
