"""Random lives of a cluster: what always holds, whatever is asked in whatever order."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pykafka_broker.cluster.features import bootstrap_records
from pykafka_broker.cluster.image import NO_LEADER, ClusterImage, ResourceType, replay
from pykafka_broker.cluster.records import decode_record, encode_record
from pykafka_broker.cluster.snapshot import snapshot_records
from pykafka_broker.controller.core import events as e
from pykafka_broker.controller.core.brokers import activate
from tests.controller.deciding import NOW_MS, an_empty_cluster, decide, heartbeat, registration, uuid

BROKERS = st.integers(1, 4)
NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "bad name"])
CONFIGS = st.sampled_from(
    [("unclean.leader.election.enable", "true"), ("min.insync.replicas", "2"), ("retention.ms", "5")]
)


class Cluster(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = an_empty_cluster(default_partitions=2)
        self.log = list(bootstrap_records())
        self.now_ms = NOW_MS
        self.ids = 100

    def submit(self, event: e.Event) -> Any:
        self.state, records, result = decide(self.state, event, self.now_ms, self.ids)
        self.log += records
        return result

    def fresh(self) -> bytes:
        self.ids += 1
        return uuid(self.ids)

    @rule(broker=BROKERS, clean=st.booleans())
    def a_broker_starts(self, broker: int, clean: bool) -> None:
        known = self.state.image.brokers.get(broker)
        previous = known.epoch if clean and known else -1
        self.submit(registration(broker, incarnation_id=self.fresh(), previous_broker_epoch=previous))

    @rule(broker=BROKERS, want_fence=st.booleans(), want_shutdown=st.booleans())
    def a_broker_says_something(self, broker: int, want_fence: bool, want_shutdown: bool) -> None:
        if broker in self.state.image.brokers:
            beat = heartbeat(self.state, broker, want_fence=want_fence, want_shutdown=want_shutdown)
            self.submit(beat)

    @rule(duration_ms=st.integers(0, 10_000))
    def time_passes(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.submit(e.ExpireSessions())

    @rule()
    def another_controller_takes_over(self) -> None:
        self.state = activate(self.state, self.now_ms)

    @rule(names=st.lists(NAMES, max_size=3), factor=st.integers(-1, 3), configs=st.sets(CONFIGS))
    def topics_are_created(self, names: list[str], factor: int, configs: set[tuple[str, str]]) -> None:
        # Of two names that differ in "." and "_" only, in one request, Kafka makes both.
        names = list({name.replace(".", "_"): name for name in names}.values())
        topics = [e.NewTopic(n, self.fresh(), -1, factor, configs=tuple(sorted(configs))) for n in names]
        self.submit(e.CreateTopics(tuple(topics)))

    @precondition(lambda self: self.state.image.topics)
    @rule(data=st.data())
    def a_topic_is_deleted(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.state.image.topics)))
        self.submit(e.DeleteTopics(((name, bytes(16)),)))

    @rule(name=NAMES, count=st.integers(0, 5))
    def partitions_are_added(self, name: str, count: int) -> None:
        self.submit(e.CreatePartitions((e.NewPartitions(name, count),)))

    @rule(name=NAMES, config=CONFIGS, operation=st.sampled_from(list(e.ConfigOperation)))
    def a_config_is_changed(self, name: str, config: tuple[str, str], operation: e.ConfigOperation) -> None:
        change = e.ConfigChange(ResourceType.TOPIC, name, ((config[0], operation, config[1]),))
        self.submit(e.IncrementalAlterConfigs((change,)))

    @rule(broker=BROKERS)
    def a_broker_is_forgotten(self, broker: int) -> None:
        self.submit(e.UnregisterBroker(broker))

    @invariant()
    def the_log_gives_the_image(self) -> None:
        image = self.state.image
        assert replay(ClusterImage(image.cluster_id), self.log, offset=0, epoch=1) == image

    @invariant()
    def a_snapshot_gives_the_image(self) -> None:
        image = self.state.image
        records = [decode_record(encode_record(record, 30)) for record in snapshot_records(image)]
        copy = replay(ClusterImage(image.cluster_id), records, offset=0, epoch=1)
        brokers = {
            b: r._replace(record_offset=image.brokers[b].record_offset) for b, r in copy.brokers.items()
        }
        assert copy._replace(brokers=brokers, offset=image.offset) == image

    @invariant()
    def replicas_stand_in_order(self) -> None:
        for topic in self.state.image.topics.values():
            assert list(topic.partitions) == list(range(len(topic.partitions)))
            for partition in topic.partitions.values():
                replicas, isr, elr = set(partition.replicas), set(partition.isr), set(partition.elr)
                assert isr <= replicas and elr <= replicas and not isr & elr
                if partition.leader == NO_LEADER:
                    assert not any(self.state.is_active(replica) for replica in isr), (
                        "an active replica could lead"
                    )
                else:
                    assert partition.leader in isr
                    assert self.state.is_active(partition.leader)

    @invariant()
    def names_stay_apart(self) -> None:
        names = [name.replace(".", "_") for name in self.state.image.topics]
        assert len(names) == len(set(names))
        assert {t.topic_id: n for n, t in self.state.image.topics.items()} == self.state.image.topic_names


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
