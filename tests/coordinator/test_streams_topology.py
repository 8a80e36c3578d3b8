"""A topology over the topics that exist: how many partitions its internal topics get, and what is wrong.

That random topologies are configured as by Apache Kafka is tested in interop/tests/test_streams_groups.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from pykafka_broker.coordinator.groups.core.streams.status import Status, StatusCode
from pykafka_broker.coordinator.groups.core.streams.topology.configured import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    configured,
)
from pykafka_broker.coordinator.groups.core.streams.topology.declared import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)
from pykafka_broker.coordinator.groups.core.streams.topology_record import topology_from, topology_value
from pykafka_broker.coordinator.groups.core.topics import TopicInfo, Topics
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def topics(**counts: int) -> Topics:
    return Topics({name: TopicInfo(name, name.encode().ljust(16), count) for name, count in counts.items()})


def over(existing: Topics, *parts: Subtopology) -> ConfiguredTopology:
    return configured(Topology(3, parts), existing, metadata_hash=77)


def incorrect(detail: str) -> Status:
    return Status(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)


COUNTING = (
    Subtopology("0", source_topics=("words",), repartition_sink_topics=("by-word",)),
    Subtopology(
        "1",
        repartition_source_topics=(InternalTopic("by-word", configs=(("cleanup.policy", "delete"),)),),
        state_changelog_topics=(InternalTopic("counts", 0, 2),),
    ),
)


def test_an_application_that_keeps_no_state_is_ready_when_its_topics_exist() -> None:
    result = over(topics(a=3, b=5), Subtopology("0", ("a", "b")), Subtopology("1", ("a",)))

    assert result == ConfiguredTopology(
        3,
        77,
        {
            "0": ConfiguredSubtopology(5, ("a", "b"), {}, (), {}),
            "1": ConfiguredSubtopology(3, ("a",), {}, (), {}),
        },
    )
    assert result.is_ready
    assert result.subtopologies is not None
    assert not result.subtopologies["0"].is_stateful


def test_missing_internal_topics_are_to_be_created_as_large_as_what_flows_into_them() -> None:
    result = over(topics(words=6), *COUNTING)

    assert result.internal_topics == {
        "by-word": InternalTopic("by-word", 6, -1, (("cleanup.policy", "delete"),)),
        "counts": InternalTopic("counts", 6, 2),
    }
    assert result.problem == Status(
        StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: counts, by-word"
    )
    assert not result.is_ready
    assert result.subtopologies is not None
    assert {name: part.task_count for name, part in result.subtopologies.items()} == {"0": 6, "1": 6}
    assert result.subtopologies["1"].is_stateful


def test_it_is_ready_once_they_exist() -> None:
    result = over(topics(words=6, **{"by-word": 6, "counts": 6}), *COUNTING)

    assert result.is_ready
    assert result.internal_topics == {}


def test_an_internal_topic_of_another_size_is_reported() -> None:
    result = over(topics(words=6, **{"by-word": 6, "counts": 4}), *COUNTING)

    assert result.problem == incorrect(
        "Existing topic counts has different number of partitions: expected 6, found 4"
    )
    assert result.subtopologies is None


def test_missing_source_topics_are_named_up_to_three() -> None:
    one = over(topics(), Subtopology("0", ("a",)))
    many = over(topics(c=1), Subtopology("0", ("e", "d", "c")), Subtopology("1", ("b", "a")))

    assert one.problem == Status(StatusCode.MISSING_SOURCE_TOPICS, "Source topics a are missing.")
    assert many.problem == Status(
        StatusCode.MISSING_SOURCE_TOPICS, "Source topics a, b, d and 1 additional topics are missing."
    )


def test_partitions_are_deduced_through_several_repartition_topics() -> None:
    result = over(
        topics(small=2, large=7),
        Subtopology("2", repartition_source_topics=(InternalTopic("second"),)),
        Subtopology(
            "1", repartition_source_topics=(InternalTopic("first"),), repartition_sink_topics=("second",)
        ),
        Subtopology("0", ("small", "large"), repartition_sink_topics=("first",)),
    )

    assert {name: topic.partitions for name, topic in result.internal_topics.items()} == {
        "first": 7,
        "second": 7,
    }


def test_a_repartition_topic_may_say_how_many_partitions_it_has() -> None:
    result = over(
        topics(a=2),
        Subtopology("0", ("a",), repartition_sink_topics=("wide",)),
        Subtopology(
            "1",
            repartition_source_topics=(InternalTopic("wide", 9),),
            state_changelog_topics=(InternalTopic("store"),),
        ),
    )

    assert {name: topic.partitions for name, topic in result.internal_topics.items()} == {
        "wide": 9,
        "store": 9,
    }


def test_a_loop_or_a_repartition_topic_that_nothing_writes_is_an_invalid_topology() -> None:
    loop = Subtopology("0", repartition_source_topics=(InternalTopic("r"),), repartition_sink_topics=("r",))
    unwritten = Subtopology("0", ("a",), repartition_source_topics=(InternalTopic("r"),))
    unread = Subtopology("0", state_changelog_topics=(InternalTopic("store"),))

    for part, text in [
        (loop, "There may be loops in the topology"),
        (unwritten, "a repartition source topic is never used as a sink topic"),
        (unread, "No source topics found for subtopology 0"),
    ]:
        with pytest.raises(KafkaError, match=text) as refused:
            over(topics(a=1), part)
        assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


# ---- copartition groups ----


def joining(*repartition: InternalTopic, sources: tuple[str, ...] = ()) -> list[Subtopology]:
    """A subtopology that reads all of these together; "a" flows into its repartition topics."""
    indexes = range(len(repartition))
    return [
        Subtopology("0", ("a",), repartition_sink_topics=tuple(topic.name for topic in repartition)),
        Subtopology(
            "1",
            sources,
            repartition_source_topics=repartition,
            copartition_groups=(CopartitionGroup(tuple(range(len(sources))), (), tuple(indexes)),),
        ),
    ]


def test_a_repartition_topic_becomes_as_large_as_the_topic_it_is_joined_with() -> None:
    result = over(topics(a=3, b=8), *joining(InternalTopic("r"), sources=("b",)))

    assert result.internal_topics["r"].partitions == 8


def test_joined_source_topics_must_be_equal() -> None:
    result = over(topics(a=3, b=8), *joining(sources=("b", "a")))

    assert result.problem == incorrect(
        "Following topics do not have the same number of partitions: [{a=3, b=8}]"
    )


def test_a_repartition_topic_with_a_size_of_its_own_must_suit_the_source_topic() -> None:
    result = over(topics(a=3, b=8), *joining(InternalTopic("r", 4), sources=("b",)))

    assert result.problem == incorrect(
        "Number of partitions [4] of repartition topic [r] doesn't match number of partitions [8] of the "
        "source topic."
    )


def test_repartition_topics_that_are_joined_follow_the_one_with_a_size_of_its_own() -> None:
    result = over(topics(a=3), *joining(InternalTopic("r"), InternalTopic("fixed", 5)))

    assert {name: topic.partitions for name, topic in result.internal_topics.items()} == {"r": 5, "fixed": 5}


def test_sizes_that_contradict_each_other_are_reported() -> None:
    result = over(topics(a=3), *joining(InternalTopic("r", 4), InternalTopic("s", 5)))

    assert result.problem == incorrect(
        "Following topics do not have the same number of partitions: [{r=4, s=5}]"
    )


def test_an_index_outside_of_its_list_is_refused() -> None:
    part = Subtopology("0", ("a",), copartition_groups=(CopartitionGroup((-1,)),))

    with pytest.raises(KafkaError) as refused:
        over(topics(a=1), part)
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


# ---- the topology itself ----


def in_the_worst_order(count: int) -> list[Subtopology]:
    """A chain in which each subtopology comes before the one that writes what it reads."""
    order = Topology(0, tuple(Subtopology(str(each)) for each in range(count))).in_java_order()
    chain = [
        Subtopology(
            part.subtopology_id,
            repartition_source_topics=(InternalTopic(f"r{index + 1}"),),
            repartition_sink_topics=(f"r{index}",),
        )
        for index, part in enumerate(order[:-1])
    ]
    last = Subtopology(order[-1].subtopology_id, ("a",), repartition_sink_topics=(f"r{count - 1}",))
    reader = Subtopology("reader", repartition_source_topics=(InternalTopic("r0"),))
    return [*chain, last, reader]


def all_stateful(count: int) -> list[Subtopology]:
    stores = tuple(InternalTopic(f"c{each}") for each in range(count))
    return [Subtopology("0", ("a",) * count, state_changelog_topics=stores)]


def all_joined(count: int) -> list[Subtopology]:
    repartition = tuple(InternalTopic(f"r{each}", 3) for each in range(count))
    groups = tuple(CopartitionGroup(repartition_source_topics=(each,)) for each in range(count))
    return [Subtopology("0", ("a",), repartition_source_topics=repartition, copartition_groups=groups)]


@pytest.mark.parametrize(
    ("parts", "count"), [(in_the_worst_order, 5_000), (all_stateful, 40_000), (all_joined, 8_000)]
)
def test_a_topology_of_a_hostile_client_costs_as_much_as_it_is_large(
    parts: Callable[[int], list[Subtopology]], count: int
) -> None:
    """Going through all of it for each of its parts held the event loop for minutes."""
    large = parts(count)
    began = time.process_time()

    result = over(topics(a=3), *large)

    assert time.process_time() - began < 8
    assert len(result.internal_topics) == count


def test_a_topology_is_the_same_in_another_order_but_not_in_another_epoch() -> None:
    first, second = COUNTING
    topology = Topology(1, (first, second))

    assert topology.is_same_as(Topology(1, (second, first)))
    assert not topology.is_same_as(Topology(2, (first, second)))
    assert not topology.is_same_as(Topology(1, (first,)))


def test_a_topology_knows_which_subtopology_reads_a_topic_and_what_it_needs() -> None:
    topology = Topology(1, COUNTING)

    assert sorted(topology.required_topics()) == ["by-word", "counts", "words"]
    assert topology.subtopology_of("words") == COUNTING[0]
    assert topology.subtopology_of("by-word") == COUNTING[1]
    assert topology.subtopology_of("counts") is None


def test_its_fingerprint_changes_with_its_topics_only() -> None:
    topology = Topology(1, COUNTING)

    before = topology.metadata_hash(topics(words=6, other=1))

    assert before == topology.metadata_hash(topics(words=6, other=2)) != 0
    assert before != topology.metadata_hash(topics(words=7))
    assert topology.metadata_hash(topics()) == 0


def test_a_topology_comes_back_from_its_record() -> None:
    topology = Topology(4, (*COUNTING, *joining(InternalTopic("r", 4), sources=("b",))))

    assert topology_from(topology_value(topology)) == topology
