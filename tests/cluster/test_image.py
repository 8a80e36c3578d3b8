"""The image: what each record does to it, and that nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.cluster.features import bootstrap_records
from pykafka_broker.cluster.image import (
    NO_LEADER,
    ClusterImage,
    CorruptMetadataError,
    ImageBuilder,
    PartitionRegistration,
    ResourceType,
    changed,
    replay,
)
from pykafka_broker.cluster.loader import MetadataLoader
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import uuid

ORDERS = m.TopicRecord(name="orders", topic_id=uuid(100))
PARTITION = PartitionRegistration(0, (1, 2), (1, 2), 1)


def image_of(*records: object, image: ClusterImage | None = None) -> ClusterImage:
    image = ClusterImage("c") if image is None else image
    return replay(image, records, offset=image.offset + 1, epoch=1)


def test_replay_leaves_the_image_it_starts_from_as_it_was() -> None:
    before = image_of(ORDERS, PARTITION.to_record(uuid(100)))
    after = image_of(
        m.PartitionChangeRecord(partition_id=0, topic_id=uuid(100), isr=[1]),
        m.RemoveTopicRecord(topic_id=uuid(100)),
        image=before,
    )
    assert before.topics["orders"].partitions == {0: PARTITION}
    assert (after.topics, after.topic_names, after.offset) == ({}, {}, 3)


def test_tables_that_no_record_touches_are_shared() -> None:
    before = image_of(ORDERS)
    after = image_of(m.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1_000), image=before)
    assert after.topics is before.topics
    assert after.next_producer_id == 1_000


def test_a_partition_change_counts_in_the_partition_epoch_and_a_leader_in_the_leader_epoch() -> None:
    def change(**fields: Any) -> PartitionRegistration:
        return changed(PARTITION, m.PartitionChangeRecord(partition_id=0, topic_id=uuid(100), **fields))

    assert change(isr=[1]) == PARTITION._replace(isr=(1,), partition_epoch=1)
    assert change(leader=-1) == PARTITION._replace(leader=-1, leader_epoch=1, partition_epoch=1)
    # The same leader named again fences what it believed before.
    assert change(leader=1) == PARTITION._replace(leader_epoch=1, partition_epoch=1)
    everything = change(
        replicas=[3],
        removing_replicas=[1],
        adding_replicas=[3],
        directories=[uuid(500)],
        eligible_leader_replicas=[2],
        last_known_elr=[1],
        leader_recovery_state=1,
    )
    assert everything == PartitionRegistration(
        0, (3,), (1, 2), 1, 0, 1, (1,), (3,), (uuid(500),), (2,), (1,), 1
    )


def test_a_partition_survives_its_own_record() -> None:
    partition = PARTITION._replace(elr=(3,), last_known_elr=(4,), removing=(2,), leader_recovery_state=1)
    image = image_of(ORDERS, partition.to_record(uuid(100)))
    assert image.partition("orders", 0) == partition
    assert [image.leader_of("orders", index) for index in (0, 9)] == [partition.leader, NO_LEADER]


def test_clearing_eligible_replicas_of_one_topic_or_of_all() -> None:
    partition = PARTITION._replace(elr=(3,), last_known_elr=(4,))
    clicks = m.TopicRecord(name="clicks", topic_id=uuid(101))
    before = image_of(ORDERS, partition.to_record(uuid(100)), clicks, partition.to_record(uuid(101)))

    one = image_of(m.ClearElrRecord(topic_name="orders"), image=before)
    every = image_of(m.ClearElrRecord(topic_name=""), image=before)

    assert [t.partitions[0].elr for t in one.topics.values()] == [(), (3,)]
    assert [t.partitions[0].elr for t in every.topics.values()] == [(), ()]


def test_configs_vanish_with_their_last_value_and_with_their_topic() -> None:
    def config(name: str, value: str | None) -> m.ConfigRecord:
        kind = ResourceType.TOPIC
        return m.ConfigRecord(resource_type=kind, resource_name="orders", name=name, value=value)

    image = image_of(ORDERS, config("a", "1"), config("b", "2"), config("a", None))
    assert image.config(ResourceType.TOPIC, "orders") == {"b": "2"}
    assert image_of(config("b", None), image=image).configs == {}
    assert image_of(m.RemoveTopicRecord(topic_id=uuid(100)), image=image).configs == {}


def test_a_feature_at_level_zero_is_no_feature() -> None:
    image = image_of(*bootstrap_records(), m.FeatureLevelRecord(name="group.version", feature_level=1))
    assert image.features["group.version"] == 1
    image = image_of(m.FeatureLevelRecord(name="group.version", feature_level=0), image=image)
    assert "group.version" not in image.features
    assert image.metadata_version == 30
    assert ClusterImage().metadata_version == 7


def test_security_records_are_kept_until_they_are_removed() -> None:
    acl = m.AccessControlEntryRecord(
        id=uuid(1),
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    scram = m.UserScramCredentialRecord(
        name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    token = m.DelegationTokenRecord(
        owner="User:a",
        requester="User:a",
        renewers=[],
        issue_timestamp=1,
        max_timestamp=2,
        expiration_timestamp=3,
        token_id="t",
    )
    image = image_of(acl, scram, token)
    assert (dict(image.acls), image.scram_credentials, image.delegation_tokens) == (
        {uuid(1): acl},
        {("a", 1): scram},
        {"t": token},
    )
    image = image_of(
        m.RemoveAccessControlEntryRecord(id=uuid(1)),
        m.RemoveUserScramCredentialRecord(name="a", mechanism=1),
        m.RemoveDelegationTokenRecord(token_id="t"),
        image=image,
    )
    assert not (image.acls or image.scram_credentials or image.delegation_tokens)


def test_quotas_belong_to_entities_in_whatever_order_their_parts_come() -> None:
    def quota(parts: list[tuple[str, str | None]], **fields: Any) -> m.ClientQuotaRecord:
        entity = [m.EntityData(entity_type=kind, entity_name=name) for kind, name in parts]
        return m.ClientQuotaRecord(entity=entity, key="producer_byte_rate", **fields)

    user, client = ("user", "a"), ("client-id", None)
    image = image_of(quota([user, client], value=1.5, remove=False))
    assert image.client_quotas == {(client, user): {"producer_byte_rate": 1.5}}
    assert image_of(quota([client, user], value=0.0, remove=True), image=image).client_quotas == {}


@pytest.mark.parametrize(
    "record",
    [
        m.PartitionChangeRecord(partition_id=7, topic_id=uuid(100)),
        m.RemoveTopicRecord(topic_id=uuid(9)),
        ORDERS,
        m.UnregisterBrokerRecord(broker_id=1, broker_epoch=1),
        m.ClearElrRecord(topic_name="nope"),
        m.RemoveAccessControlEntryRecord(id=uuid(9)),
        object(),
    ],
)
def test_a_record_that_contradicts_the_log_stops_the_replay(record: object) -> None:
    with pytest.raises(CorruptMetadataError):
        image_of(record, image=image_of(ORDERS))


names = st.sampled_from(["a", "b", "a.b", "a_b", "c.d"])


@given(st.lists(names, max_size=20), st.data())
def test_one_replay_of_everything_equals_many_replays_of_pieces(
    wanted: list[str], data: st.DataObject
) -> None:
    records: list[object] = []
    live: dict[str, bytes] = {}
    for number, name in enumerate(wanted):
        if name in live:
            records.append(m.RemoveTopicRecord(topic_id=live.pop(name)))
        else:
            live[name] = uuid(100 + number)
            records.append(m.TopicRecord(name=name, topic_id=live[name]))
            records.append(PARTITION.to_record(live[name]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=5)))

    pieces = ClusterImage("c")
    for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        pieces = image_of(*records[start:end], image=pieces)

    whole = image_of(*records)
    assert pieces._replace(offset=whole.offset, epoch=1) == whole._replace(epoch=1)
    assert set(whole.topics) == set(live)
    assert sorted(sum(whole.colliding_topics.values(), ())) == sorted(n for n in live if n not in "ab")


def test_a_builder_goes_on_after_it_has_built() -> None:
    builder = ImageBuilder(ClusterImage("c"))
    builder.apply(ORDERS, 0)
    first = builder.build(1)
    builder.apply(PARTITION.to_record(uuid(100)), 1)
    second = builder.build(1)
    assert first.topics["orders"].partitions == {}
    assert second.topics["orders"].partitions == {0: PARTITION}


# -- transactions ------------------------------------------------------------------------------------------

CLICKS = m.TopicRecord(name="clicks", topic_id=uuid(101))


def test_a_metadata_transaction_shows_all_at_once() -> None:
    loader = MetadataLoader(ClusterImage("c"))
    loader.apply([ORDERS, m.BeginTransactionRecord(), CLICKS], offset=0, epoch=3)
    assert (list(loader.image.topics), loader.in_transaction, loader.image.offset) == (["orders"], True, 0)
    loader.apply([m.EndTransactionRecord()], offset=3, epoch=3)
    assert (list(loader.image.topics), loader.in_transaction) == (["orders", "clicks"], False)
    assert (loader.image.offset, loader.image.epoch) == (3, 3)


def test_an_aborted_transaction_never_shows() -> None:
    """The epoch of a leader that begins meanwhile did: a start threw away the log after such a snapshot."""
    loader = MetadataLoader(ClusterImage("c"))
    loader.apply([m.NoOpRecord(), m.BeginTransactionRecord(), CLICKS], offset=0, epoch=1)
    loader.skip_to(3, 2)
    assert (loader.image.offset, loader.image.epoch) == (0, 1)
    loader.apply([m.AbortTransactionRecord(), ORDERS], offset=4, epoch=2)
    assert (list(loader.image.topics), loader.image.offset, loader.image.epoch) == (["orders"], 5, 2)


@pytest.mark.parametrize(
    "records",
    [
        [m.EndTransactionRecord()],
        [m.AbortTransactionRecord()],
        [m.BeginTransactionRecord(), m.BeginTransactionRecord()],
    ],
)
def test_transactions_neither_nest_nor_end_twice(records: list[object]) -> None:
    with pytest.raises(CorruptMetadataError):
        MetadataLoader(ClusterImage("c")).apply(records, offset=0, epoch=1)
