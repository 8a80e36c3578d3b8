"""Families of the controller, of raft and of the metadata that a broker has taken up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Union

from pykafka_broker.cluster.image import NO_LEADER, ClusterImage
from pykafka_broker.controller.role import ControllerRole
from pykafka_broker.metrics.family import Family, Pausing, Sample, labelled
from pykafka_broker.metrics.node_parts import NodeParts, Scrape
from pykafka_broker.raft.core.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from pykafka_broker.raft.core.state import RaftState

#: Partitions that are looked at before the event loop runs other work.
PARTITIONS_PER_SLICE = 500


class _Partitions:
    """Counts over the partitions of the cluster."""

    def __init__(self, node: NodeParts) -> None:
        self.image = node.metadata.image
        self.is_complete = False
        self.all = self.offline = self.not_preferred = 0

    def count(self) -> Pausing:
        if self.is_complete:
            return
        for topic in self.image.topics.values():  # an image never changes
            for partition in topic.partitions.values():
                self.all += 1
                self.offline += partition.leader == NO_LEADER
                self.not_preferred += partition.leader != partition.replicas[0]
                if self.all % PARTITIONS_PER_SLICE == 0:
                    yield None
        self.is_complete = True


def _controller(name: str, meaning: str, value: Callable[[NodeParts], int]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        if scrape.node.role is not None:
            yield "", value(scrape.node)

    return Family(
        f"kafka_controller_kafkacontroller_{name.lower()}",
        "gauge",
        "",
        f"{meaning} On controllers.",
        f"kafka.controller:type=KafkaController,name={name}",
        read,
    )


def _role(name: str, meaning: str, value: Callable[[ControllerRole], int]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        if scrape.node.role is not None:
            yield "", value(scrape.node.role)

    return _controller(name, meaning, lambda _: 0)._replace(read=read)


def _counted(name: str, meaning: str, value: Callable[[_Partitions], int]) -> Family:
    def read(scrape: Scrape) -> Pausing:
        if scrape.node.role is not None:
            counted = scrape.once(_Partitions)
            yield from counted.count()
            yield "", value(counted)

    return _controller(name, meaning, lambda _: 0)._replace(read=read)


def _of_brokers(
    name: str, meaning: str, values: Callable[[NodeParts, ControllerRole], Mapping[int, int]]
) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        if scrape.node.role is not None:
            for broker_id, value in values(scrape.node, scrape.node.role).items():
                yield labelled(broker=broker_id), value

    family = _controller(name, meaning, lambda _: 0)
    return family._replace(labels="broker", mbean=f"{family.mbean},broker=*", read=read)


def _brokers(image: ClusterImage, *, fenced: bool) -> int:
    return sum(broker.fenced == fenced for broker in image.brokers.values())


def _registration_states(node: NodeParts, _: ControllerRole) -> Mapping[int, int]:
    return {
        broker.broker_id: 10 if broker.fenced else 20 if broker.in_controlled_shutdown else 30
        for broker in node.metadata.image.brokers.values()
    }


def _unclean(scrape: Scrape) -> Iterable[Sample]:
    if scrape.node.role is not None:
        yield "", scrape.node.role.unclean_elections


def _raft(
    name: str, meaning: str, value: Callable[[NodeParts, RaftState], Union[int, float, None]]
) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        state = scrape.node.raft.state
        found = None if state is None else value(scrape.node, state)
        if found is not None:
            yield "", found

    return Family(
        f"kafka_server_raftmetrics_{name.replace('-', '_')}",
        "gauge",
        "",
        meaning,
        f"kafka.server:type=raft-metrics, {name}",
        read,
    )


def _vote(state: RaftState) -> int:
    role = state.role
    if isinstance(role, (Leader, Candidate)):
        return state.local.key.node_id
    voted = role.voted if isinstance(role, (Unattached, Prospective)) else None
    return state.election.voted_id if voted is None else voted.node_id


def _role_name(state: RaftState) -> str:
    role = state.role
    if isinstance(role, Follower):
        return "follower" if state.log.voters.is_voter(state.local.key) else "observer"
    if isinstance(role, (Unattached, Prospective)):
        name = "unattached" if isinstance(role, Unattached) else "prospective"
        return name if role.voted is None else f"{name}-voted"
    return {Leader: "leader", Candidate: "candidate", Resigned: "resigned"}[type(role)]


def _current_state(scrape: Scrape) -> Iterable[Sample]:
    state = scrape.node.raft.state
    if state is not None:
        yield labelled(current_state=_role_name(state)), 1


def _rate(node: NodeParts, state: RaftState, *, leads: bool) -> float:
    rate = node.rates.of("metadata records", node.raft.end_offset)
    return rate if isinstance(state.role, Leader) is leads else 0.0


def _latency(node: NodeParts) -> float | None:
    """The average of the commits since the last scrape, in milliseconds; None without one."""
    average_ns = node.rates.ratio("commits", node.raft.commit_ns, node.raft.commits)
    return None if average_ns is None else average_ns / 1e6


def _metadata(name: str, meaning: str, value: Callable[[NodeParts], int]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        if scrape.node.broker is not None:
            yield "", value(scrape.node)

    return Family(
        f"kafka_server_brokermetadatametrics_{name.replace('-', '_')}",
        "gauge",
        "",
        meaning,
        f"kafka.server:type=broker-metadata-metrics, {name}",
        read,
    )


def _channel(name: str, attribute: str, meaning: str) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        peers = scrape.node.peers
        yield "", 0 if peers is None else getattr(peers.traffic, attribute)

    return Family(
        f"kafka_server_raftchannelmetrics_{name.replace('-', '_')}",
        "counter",
        "",
        f"{meaning} 0 on an only voter.",
        f"kafka.server:type=raft-channel-metrics, {name}",
        read,
    )


def _broker_info(scrape: Scrape) -> Iterable[Sample]:
    node_id = scrape.node.config.node_id
    registration = scrape.node.metadata.image.brokers.get(node_id)
    if scrape.node.broker is not None and registration is not None:
        for endpoint in list(registration.listeners.values())[:1]:
            yield labelled(id=node_id, address=f"{endpoint.host}:{endpoint.port}"), 1


def _broker_count(scrape: Scrape) -> Iterable[Sample]:
    yield "", len(scrape.node.metadata.image.brokers)


FAMILIES = (
    _controller(
        "ActiveControllerCount",
        "1 on the active controller.",
        lambda node: int(node.role is not None and node.role.is_active),
    ),
    _controller(
        "ActiveBrokerCount",
        "Brokers that are unfenced.",
        lambda node: _brokers(node.metadata.image, fenced=False),
    ),
    _controller(
        "FencedBrokerCount",
        "Brokers that are fenced.",
        lambda node: _brokers(node.metadata.image, fenced=True),
    ),
    _controller(
        "ControlledShutdownBrokerCount",
        "Brokers that are handing over their partitions, to stop.",
        lambda node: sum(broker.in_controlled_shutdown for broker in node.metadata.image.brokers.values()),
    ),
    _of_brokers(
        "BrokerRegistrationState",
        "The state of each registered broker: 10 fenced, 20 handing over, 30 active.",
        _registration_states,
    ),
    _of_brokers(
        "TimeSinceLastHeartbeatReceivedMs",
        "Milliseconds since the last heartbeat of each broker with a session, on the active controller.",
        lambda _, role: role.heartbeat_ages_ms,
    ),
    _role(
        "TimedOutBrokerHeartbeatCount",
        "Heartbeats whose time-out came before the answer.",
        lambda role: role.timed_out_heartbeats,
    ),
    _controller("GlobalTopicCount", "Topics.", lambda node: len(node.metadata.image.topics)),
    _counted("GlobalPartitionCount", "Partitions.", lambda counted: counted.all),
    _counted("OfflinePartitionsCount", "Partitions without a leader.", lambda counted: counted.offline),
    _counted(
        "PreferredReplicaImbalanceCount",
        "Partitions whose leader is not their first replica.",
        lambda counted: counted.not_preferred,
    ),
    _controller(
        "LastAppliedRecordOffset",
        "The last metadata record that is published.",
        lambda node: node.metadata.published_offset - 1,
    ),
    _controller(
        "LastCommittedRecordOffset",
        "The last metadata record that is committed.",
        lambda node: node.metadata.high_watermark - 1,
    ),
    _controller(
        "NewActiveControllersCount",
        "Times that this node has learnt of a new active controller.",
        lambda node: node.raft.new_leaders,
    ),
    _role(
        "EventQueueOperationsStartedCount",
        "Events that this controller has decided while it was active.",
        lambda role: role.decisions,
    ),
    _role(
        "EventQueueOperationsTimedOutCount",
        "Requests to it whose time-out came before the answer.",
        lambda role: role.timed_out,
    ),
    Family(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "counter",
        "",
        "Elections of a replica that was not in sync, decided here. On controllers.",
        "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec, Count",
        _unclean,
    ),
    Family(
        "kafka_server_raftmetrics_current_state",
        "untyped",
        "current_state",
        "1 for the role of this replica of the metadata log.",
        "kafka.server:type=raft-metrics, current-state",
        _current_state,
    ),
    _raft(
        "current-leader",
        "The leader of the quorum; -1 if none is known.",
        lambda node, _: node.raft.leader_id,
    ),
    _raft("current-vote", "The voter that this one voted for; -1 if none.", lambda _, state: _vote(state)),
    _raft("current-epoch", "The epoch of the quorum.", lambda _, state: state.role.epoch),
    _raft("high-watermark", "The end of what is committed.", lambda _, state: state.high_watermark),
    _raft("log-end-offset", "The end of the metadata log.", lambda node, _: node.raft.end_offset),
    _raft("log-end-epoch", "The epoch of its last record.", lambda _, state: state.log.last_epoch),
    _raft("number-of-voters", "Voters.", lambda _, state: len(state.log.voters.voters)),
    _raft(
        "number-of-observers",
        "Observers that fetch from this leader.",
        lambda _, state: (
            sum(not state.log.voters.is_voter(key) for key in state.role.progress)
            if isinstance(state.role, Leader)
            else None
        ),
    ),
    _raft(
        "append-records-rate",
        "Records a second that the leader has appended since the last scrape.",
        lambda node, state: _rate(node, state, leads=True),
    ),
    _raft(
        "fetch-records-rate",
        "Records a second that a follower has fetched since the last scrape.",
        lambda node, state: _rate(node, state, leads=False),
    ),
    _raft(
        "commit-latency-avg",
        "Milliseconds from an append to its commit, on the leader, on average since the last scrape.",
        lambda node, _: _latency(node),
    ),
    _channel("request-total", "requests", "Requests to other replicas of the metadata log."),
    _channel("response-total", "responses", "Their responses."),
    _channel("outgoing-byte-total", "sent_bytes", "Bytes of these requests."),
    _channel("incoming-byte-total", "received_bytes", "Bytes of these responses."),
    _metadata(
        "last-applied-record-offset",
        "The last metadata record that this broker has published.",
        lambda node: node.metadata.published_offset - 1,
    ),
    _metadata(
        "metadata-apply-error-count",
        "Errors of parts of this broker at published metadata.",
        lambda node: node.metadata.apply_errors,
    ),
    Family(
        "kafka_brokers",
        "gauge",
        "",
        "Registered brokers, by this node's metadata.",
        "",
        _broker_count,
    ),
    Family("kafka_broker_info", "gauge", "id address", "1 for this broker.", "", _broker_info),
)
