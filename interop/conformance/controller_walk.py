"""Random walks of a controller with several brokers, held with Apache Kafka's controller and with ours.

    python -m interop.conformance.controller_walk [--seed N] [--walks K] [--steps S]

The brokers are none: the walk registers them, sends their heartbeats, and asks as leaders for other in-sync
replicas. They come, go and stop in order, and lose log directories; partitions move between them and elect
leaders; `min.insync.replicas` and unclean elections are switched. After every step the answer, the partitions
(leader, epoch, in-sync and eligible replicas) and the reassignments under way are compared. The next step
depends on the walk's seed and on those answers alone; a walk that differs is told with its seed.

Each node's own broker holds no replica: it would act by itself. Now and then a walk differs in the eligible
replicas where Apache Kafka counts a broker that is no replica any more beside others (`ACCEPTED`).
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from random import Random
from typing import Any

from interop.conformance.accepted import Accepted
from interop.conformance.brokers import FEATURES, cluster_id, uuid_of
from interop.conformance.compare import MISSING
from interop.conformance.conversation import Case, Conversation
from interop.conformance.play import Verdict, both_brokers, run
from interop.conformance.talk import ANY, PAUSE_S, SET_UP_TIMEOUT_S, SetUpError, Talk
from pykafka_broker.protocol.messages import alter_partition as altering
from pykafka_broker.protocol.messages import alter_partition_reassignments as reassigning
from pykafka_broker.protocol.messages import assign_replicas_to_dirs as assigning
from pykafka_broker.protocol.messages import broker_registration as registering
from pykafka_broker.protocol.messages import describe_configs as describing_configs
from pykafka_broker.protocol.messages import describe_topic_partitions as describing
from pykafka_broker.protocol.messages import elect_leaders as electing
from pykafka_broker.protocol.messages import incremental_alter_configs as configuring
from pykafka_broker.protocol.messages import list_partition_reassignments as listing
from pykafka_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from pykafka_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)

#: No elections by the clock, and sessions that outlive a walk.
SETTINGS = {"broker.session.timeout.ms": "60000", "auto.leader.rebalance.enable": "false"}
PARTITIONS = 3
BROKERS = 5
#: An offset that no metadata log reaches in a walk: the broker has read everything.
EVERYTHING = 1 << 40
TOPIC = 2
COUNTER = "retention.ms"

ACCEPTED = (
    Accepted(
        "no leader is no last known leader",
        "wander/*",
        {"*.last_known_elr.*": MISSING},
        "Apache Kafka remembers broker -1 as the last leader when a partition without one loses replicas.",
        apache="-1",
    ),
    Accepted(
        "who is no replica is not eligible",
        "wander/*",
        {"*.eligible_leader_replicas.*": MISSING},
        "Apache Kafka counts brokers as eligible that a reassignment has taken from the replicas.",
    ),
)


class Cluster:
    """Brokers that are none, and one topic on them."""

    def __init__(self, talk: Talk, seed: int) -> None:
        self.talk, self.random = talk, Random(seed)
        self.controllers = talk.controllers()
        self.cluster_id = cluster_id(talk)
        self.everyone = [1_000 + 10 * seed + number for number in range(BROKERS)]
        #: Those that have not stopped.
        self.brokers = list(self.everyone)
        self.directories = {
            broker: [uuid_of(talk, f"{broker}a"), uuid_of(talk, f"{broker}b")] for broker in self.brokers
        }
        self.epochs: dict[int, int] = {}
        self.fenced: set[int] = set()
        self.asked = 0
        for broker in self.brokers:
            self.register(broker)
            self.beat(broker)
        self.topic = talk.name("orders")
        self.topic_id = self.create_topic()
        self.partitions: list[Any] = []
        #: Those that are getting other replicas.
        self.moving: set[int] = set()
        #: The epoch of each partition, as it was last.
        self.partition_epochs = [0] * PARTITIONS
        self.look()

    # -- what happens ---------------------------------------------------------------------------------

    def step(self) -> None:
        [take] = self.random.choices(
            [
                self.a_broker_is_fenced_or_unfenced,
                self.a_leader_changes_its_isr,
                self.replicas_are_reassigned,
                self.leaders_are_elected,
                self.a_broker_stops,
                self.a_directory_fails,
                self.replicas_are_said_to_be_elsewhere,
                self.a_config_changes,
                self.a_registration_is_amended,
            ],
            [8, 8, 4, 3, 1, 1, 2, 2, 1],
        )
        take()
        self.look()

    def a_broker_is_fenced_or_unfenced(self) -> None:
        broker = self.random.choice(self.brokers)
        offset = EVERYTHING if self.random.random() < 0.9 else 0
        self.beat(broker, current_metadata_offset=offset, want_fence=self.random.random() < 0.5)

    def a_broker_stops(self) -> None:
        """It may go at once, or waits for the others to know who leads now; that is not waited for."""
        broker = self.random.choice(self.brokers)
        if len(self.brokers) > 3:
            self.controllers.ask(self.heartbeat(broker, want_shut_down=True), ANY)
            self.brokers.remove(broker)

    def a_registration_is_amended(self) -> None:
        self.register(self.random.choice(self.brokers))

    def a_leader_changes_its_isr(self) -> None:
        partition = self.random.choice(self.partitions)
        replicas = partition.replica_nodes
        leader = partition.leader_id if partition.leader_id >= 0 else self.random.choice(replicas)
        asks = leader if self.random.random() < 0.9 else self.random.choice(self.brokers)
        isr = {replica for replica in replicas if self.random.random() < 0.7}
        if self.random.random() < 0.9:
            isr.add(leader)
        chosen = sorted(isr)
        self.random.shuffle(chosen)
        self.controllers.ask(
            altering.AlterPartitionRequest(
                broker_id=asks,
                broker_epoch=self.epochs[asks],
                topics=[
                    altering.AlterPartitionRequestTopicData(
                        topic_id=self.topic_id,
                        partitions=[
                            altering.AlterPartitionRequestPartitionData(
                                partition_index=partition.partition_index,
                                leader_epoch=partition.leader_epoch,
                                partition_epoch=self.partition_epoch(partition),
                                new_isr_with_epochs=[
                                    altering.BrokerState(broker_id=broker, broker_epoch=self.epochs[broker])
                                    for broker in chosen
                                ],
                            )
                        ],
                    )
                ],
            ),
            ANY,
            version=3,
        )

    def partition_epoch(self, partition: Any) -> int:
        """The epoch of a partition, tried out: no request without it has it in its answer."""
        leader = partition.leader_id
        if leader < 0:
            return 0
        for guess in range(self.partition_epochs[partition.partition_index], 500):
            data = altering.AlterPartitionRequestPartitionData(
                partition_index=partition.partition_index,
                leader_epoch=partition.leader_epoch,
                partition_epoch=guess,
                # No set that can be: the epoch is looked at before it.
                new_isr_with_epochs=[],
            )
            topic = altering.AlterPartitionRequestTopicData(topic_id=self.topic_id, partitions=[data])
            asked = altering.AlterPartitionRequest(
                broker_id=leader, broker_epoch=self.epochs[leader], topics=[topic]
            )
            answer = self.controllers.send(asked, version=3).receive()
            if answer.error_code or answer.topics[0].partitions[0].error_code == INVALID_REQUEST:
                self.partition_epochs[partition.partition_index] = guess
                return guess
        raise SetUpError("no epoch fits")

    def replicas_are_reassigned(self) -> None:
        partitions = [
            reassigning.ReassignablePartition(partition_index=index, replicas=self.wish(index))
            for index in self.random.sample(range(PARTITIONS), self.random.randint(1, 2))
        ]
        topics = [reassigning.ReassignableTopic(name=self.topic, partitions=partitions)]
        self.talk.ask(
            reassigning.AlterPartitionReassignmentsRequest(
                topics=topics, allow_replication_factor_change=self.random.random() < 0.8
            ),
            ANY,
        )

    def wish(self, index: int) -> list[int] | None:
        """New replicas for a partition, or an end; where a wish replaces another, ours differs on purpose."""
        if index in self.moving or self.random.random() < 0.2:
            return None
        return self.random.sample(self.everyone, self.random.randint(1, 4))

    def leaders_are_elected(self) -> None:
        indexes = self.random.sample(range(PARTITIONS), self.random.randint(1, PARTITIONS))
        topics = [electing.TopicPartitions(topic=self.topic, partitions=indexes)]
        unclean = self.random.random() < 0.3
        self.talk.ask(electing.ElectLeadersRequest(election_type=int(unclean), topic_partitions=topics), ANY)

    def a_directory_fails(self) -> None:
        broker = self.random.choice(self.brokers)
        if broker in self.fenced:
            # Apache Kafka would let a broker lead what is in a directory that fails with this heartbeat.
            return
        failed = [self.directories[broker][self.random.randint(0, 1)]]
        self.beat(broker, offline_log_dirs=failed)

    def replicas_are_said_to_be_elsewhere(self) -> None:
        broker = self.random.choice(self.brokers)
        indexes = self.random.sample(range(PARTITIONS), 2)
        topic = assigning.AssignReplicasToDirsRequestTopicData(
            topic_id=self.topic_id,
            partitions=[
                assigning.AssignReplicasToDirsRequestPartitionData(partition_index=index) for index in indexes
            ],
        )
        directory = assigning.AssignReplicasToDirsRequestDirectoryData(
            id=self.random.choice(self.directories[broker]), topics=[topic]
        )
        self.controllers.ask(
            assigning.AssignReplicasToDirsRequest(
                broker_id=broker, broker_epoch=self.epochs[broker], directories=[directory]
            ),
            ANY,
        )

    def a_config_changes(self) -> None:
        if self.random.random() < 0.5:
            self.configure("min.insync.replicas", str(self.random.randint(1, 4)))
        else:
            self.configure("unclean.leader.election.enable", self.random.choice(["true", "false", "false"]))

    # -- how it is asked ------------------------------------------------------------------------------

    def register(self, broker: int) -> None:
        answer = self.controllers.do(
            registering.BrokerRegistrationRequest(
                broker_id=broker,
                cluster_id=self.cluster_id,
                incarnation_id=uuid_of(self.talk, f"life{broker}"),
                listeners=[
                    registering.Listener(name="PLAINTEXT", host="elsewhere", port=9092, security_protocol=0)
                ],
                features=[
                    registering.Feature(name=name, min_supported_version=low, max_supported_version=high)
                    for name, (low, high) in FEATURES.items()
                ],
                rack=None,
                log_dirs=self.directories[broker],
            ),
            version=4,
        )
        self.epochs[broker] = answer.broker_epoch

    def heartbeat(self, broker: int, **details: Any) -> BrokerHeartbeatRequest:
        values: dict[str, Any] = {
            "broker_id": broker,
            "broker_epoch": self.epochs[broker],
            "current_metadata_offset": EVERYTHING,
            "want_fence": False,
            "want_shut_down": False,
            **details,
        }
        return BrokerHeartbeatRequest(**values)

    def beat(self, broker: int, **details: Any) -> None:
        is_fenced = self.controllers.ask(self.heartbeat(broker, **details), ANY).is_fenced
        (self.fenced.add if is_fenced else self.fenced.discard)(broker)

    def create_topic(self) -> bytes:
        factor = self.random.randint(1, 4)
        assignments = [
            CreatableReplicaAssignment(
                partition_index=index, broker_ids=self.random.sample(self.brokers, factor)
            )
            for index in range(PARTITIONS)
        ]
        new = CreatableTopic(
            name=self.topic, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=[]
        )
        created = self.talk.do(CreateTopicsRequest(topics=[new], timeout_ms=10_000, validate_only=False))
        self.talk.created.append(self.topic)
        topic_id: bytes = created.topics[0].topic_id
        return topic_id

    def configure(self, key: str, value: str) -> None:
        change = configuring.AlterableConfig(name=key, config_operation=0, value=value)
        resource = configuring.AlterConfigsResource(
            resource_type=TOPIC, resource_name=self.topic, configs=[change]
        )
        self.talk.do(configuring.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False))

    def look(self) -> None:
        """Compare the partitions, once the node's broker has read everything: it shows a later change too."""
        self.asked += 1
        self.configure(COUNTER, str(1_000_000 + self.asked))
        resource = describing_configs.DescribeConfigsResource(
            resource_type=TOPIC, resource_name=self.topic, configuration_keys=[COUNTER]
        )
        asking = describing_configs.DescribeConfigsRequest(resources=[resource])
        deadline = time.monotonic() + SET_UP_TIMEOUT_S
        while self.talk.do(asking).results[0].configs[0].value != str(1_000_000 + self.asked):
            if time.monotonic() > deadline:
                raise SetUpError("a change is not seen")
            time.sleep(PAUSE_S)
        topics = [describing.TopicRequest(name=self.topic)]
        answer = self.talk.ask(describing.DescribeTopicPartitionsRequest(topics=topics), ANY)
        self.partitions = answer.topics[0].partitions
        wanted = listing.ListPartitionReassignmentsTopics(
            name=self.topic, partition_indexes=list(range(PARTITIONS))
        )
        moving = self.talk.ask(listing.ListPartitionReassignmentsRequest(topics=[wanted]), ANY)
        self.moving = {p.partition_index for topic in moving.topics for p in topic.partitions}

    def finish(self) -> None:
        """A node that stops does not wait for brokers that are fenced, nor for those that stop as well."""
        for broker in self.brokers:
            self.beat(broker, want_fence=True)


INVALID_REQUEST = 42


def walk(seed: int, steps: int, talk: Talk) -> None:
    cluster = Cluster(talk, seed)
    for _ in range(steps):
        cluster.step()
    cluster.finish()


def cases(seed: int, walks: int, steps: int) -> list[Case]:
    return [
        Case(
            Conversation("wander", f"controller_{number}", (0,), True, False, partial(walk, number, steps)), 0
        )
        for number in range(seed, seed + walks)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m interop.conformance.controller_walk", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--walks", type=int, default=10)
    parser.add_argument("--steps", type=int, default=40)
    asked = parser.parse_args()
    with both_brokers(SETTINGS) as (apache, ours):
        results = run(cases(asked.seed, asked.walks, asked.steps), apache, ours, accepted=ACCEPTED)
    unequal = [result for result in results if result.verdict in (Verdict.DIFFERENT, Verdict.BROKEN)]
    for result in unequal:
        print(f"{result.verdict.value}: {result.case}: {result.problem}")
        meant = [entry for entry in ACCEPTED if entry.concerns(result.case)]
        new = [
            each for each in result.of_value if not any(entry.matches(result.case, each) for entry in meant)
        ]
        for difference in new[:3]:
            print(f"    {difference}")
    print(f"{len(results) - len(unequal)} of {len(results)} walks of {asked.steps} steps equal")
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
