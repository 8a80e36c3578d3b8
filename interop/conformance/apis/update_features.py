"""UpdateFeatures: which levels may be raised and lowered, and in which words that is refused.

Those that change a level have the brokers for themselves, and put it back.
"""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

INVALID = E.INVALID_UPDATE_VERSION
UNKNOWN, UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = range(4)
METADATA, KRAFT = "metadata.version", "kraft.version"
GROUP, TRANSACTION = "group.version", "transaction.version"
ELR = "eligible.leader.replicas.version"
#: The levels that both brokers have, of features whose levels are the same with both.
LEVELS = {METADATA: 30, KRAFT: 1, GROUP: 1, TRANSACTION: 2, ELR: 1}


def to(feature: str, level: int, upgrade_type: int = UPGRADE) -> FeatureUpdateKey:
    return FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)


def updating(*updates: FeatureUpdateKey, **fields: Any) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(feature_updates=list(updates), **fields)


def trying(*updates: FeatureUpdateKey) -> UpdateFeaturesRequest:
    """Only validated."""
    return updating(*updates, validate_only=True)


@conversation
def nothing(talk: Talk) -> None:
    talk.ask(updating())


@conversation
def the_levels_that_there_are(talk: Talk) -> None:
    for feature, level in LEVELS.items():
        talk.ask(updating(to(feature, level)))


@conversation
def several_levels_that_there_are(talk: Talk) -> None:
    talk.ask(updating(*(to(feature, level) for feature, level in LEVELS.items())))
    talk.ask(updating(*(to(feature, level) for feature, level in reversed(LEVELS.items()))))


@conversation
def a_feature_named_twice(talk: Talk) -> None:
    talk.ask(updating(to(GROUP, 9), to(TRANSACTION, 2), to(GROUP, 1)))
    talk.ask(updating(to(GROUP, 1), to(TRANSACTION, 2), to(GROUP, 9)), INVALID)


@conversation
def an_unknown_feature(talk: Talk) -> None:
    for name in ("nonsense.version", ""):
        for level in (-1, 0, 1):
            talk.ask(updating(to(name, level)), INVALID)


@conversation
def a_level_above_those_supported(talk: Talk) -> None:
    for feature, level in LEVELS.items():
        talk.ask(updating(to(feature, level + 1)), INVALID)
        talk.ask(updating(to(feature, 32_767)), INVALID)


@conversation
def a_level_below_zero(talk: Talk) -> None:
    for feature in LEVELS:
        talk.ask(updating(to(feature, -1)), INVALID)


@conversation
def a_metadata_version_below_those_supported(talk: Talk) -> None:
    for level in (0, 6):
        talk.ask(updating(to(METADATA, level)), INVALID)


@conversation
def a_lower_level_as_an_upgrade(talk: Talk) -> None:
    for feature, level in LEVELS.items():
        talk.ask(updating(to(feature, level - 1)), INVALID)


@conversation("0")
def the_oldest_version_cannot_lower_a_level(talk: Talk) -> None:
    allowed = FeatureUpdateKey(feature=TRANSACTION, max_version_level=1, allow_downgrade=True)
    talk.ask(updating(allowed), INVALID)


@conversation("1+")
def a_lower_level_that_is_only_tried(talk: Talk) -> None:
    for upgrade_type in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        for feature in (GROUP, TRANSACTION, ELR):
            for level in range(LEVELS[feature] + 1):
                talk.ask(trying(to(feature, level, upgrade_type)))


@conversation("1+")
def the_level_of_the_quorum_is_not_lowered(talk: Talk) -> None:
    for upgrade_type in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        talk.ask(updating(to(KRAFT, 0, upgrade_type)), INVALID)
        talk.ask(updating(to(KRAFT, 1, upgrade_type)))


@conversation("1+")
def a_metadata_version_that_would_lose_metadata(talk: Talk) -> None:
    for upgrade_type in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        for level in (29, 23, 22, 7):
            talk.ask(updating(to(METADATA, level, upgrade_type)), INVALID)


@conversation("1+")
def a_metadata_version_that_is_not_there_as_a_downgrade(talk: Talk) -> None:
    for upgrade_type in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        for level in (0, 6, 31):
            talk.ask(updating(to(METADATA, level, upgrade_type)), INVALID)
        talk.ask(updating(to(METADATA, 30, upgrade_type)))


@conversation("1+")
def a_kind_of_change_that_there_is_not(talk: Talk) -> None:
    for upgrade_type in (UNKNOWN, 4, -1):
        for level in (-1, 0, 1, 2):
            talk.ask(updating(to(GROUP, level, upgrade_type)), INVALID)
        talk.ask(updating(to("nonsense.version", 1, upgrade_type)), INVALID)


@conversation
def one_wrong_update_among_others(talk: Talk) -> None:
    talk.ask(updating(to(GROUP, 1), to("nonsense.version", 1), to(TRANSACTION, 2)), INVALID)


@conversation
def the_first_of_several_wrong_updates(talk: Talk) -> None:
    names = ["foo", "bar", "baz", *LEVELS]
    for start in range(len(names)):
        talk.ask(updating(*(to(name, 40) for name in names[start:])), INVALID)
        talk.ask(updating(*(to(name, 40) for name in reversed(names[start:]))), INVALID)


@conversation
def a_timeout_of_nothing(talk: Talk) -> None:
    for timeout_ms in (0, -1):
        talk.ask(updating(to(GROUP, 1), timeout_ms=timeout_ms))


@conversation
def levels_over_a_listener_of_controllers(talk: Talk) -> None:
    controllers = talk.controllers()
    controllers.ask(updating(to(GROUP, 1), to(TRANSACTION, 2)))
    controllers.ask(updating(to(GROUP, 1), to(TRANSACTION, 3)), INVALID)


@conversation("1+", alone=True)
def a_level_is_lowered_and_raised_again(talk: Talk) -> None:
    for feature in (TRANSACTION, ELR, GROUP):
        for upgrade_type in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            talk.ask(updating(to(feature, 0, upgrade_type)))
            talk.ask(updating(to(feature, 0, upgrade_type)))
            talk.ask(updating(to(feature, LEVELS[feature], SAFE_DOWNGRADE)), INVALID)
            talk.ask(updating(to(feature, LEVELS[feature])))
            talk.ask(updating(to(feature, 0)), INVALID)


@conversation("1+", alone=True)
def levels_are_lowered_and_raised_together(talk: Talk) -> None:
    talk.ask(updating(to(TRANSACTION, 1, SAFE_DOWNGRADE), to(GROUP, 0, UNSAFE_DOWNGRADE)))
    talk.ask(trying(to(TRANSACTION, 2, SAFE_DOWNGRADE)), INVALID)
    talk.ask(trying(to(GROUP, 1, SAFE_DOWNGRADE)), INVALID)
    talk.ask(updating(to(GROUP, 1), to(TRANSACTION, 1, SAFE_DOWNGRADE), to(TRANSACTION, 2)))
    talk.ask(trying(to(TRANSACTION, 1)), INVALID)
    talk.ask(trying(to(GROUP, 0)), INVALID)


@conversation("1+", alone=True)
def without_group_version_the_broker_assigns_no_partitions(talk: Talk) -> None:
    joining = ConsumerGroupHeartbeatRequest(
        group_id=talk.name("group"),
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[talk.name("topic")],
        topic_partitions=[],
    )
    talk.ask(updating(to(GROUP, 0, SAFE_DOWNGRADE)))
    talk.ask(
        joining,
        E.UNSUPPORTED_VERSION,
        version=1,
        # A broker that is not the controller hears of the level a moment later.
        until=lambda answer: answer.error_code == E.UNSUPPORTED_VERSION,
    )
    talk.ask(updating(to(GROUP, 1)))
