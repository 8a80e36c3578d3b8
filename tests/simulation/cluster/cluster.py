"""A cluster of whole nodes, its clients, and its faults.

For `FAULTS_MS` everything goes wrong that the seed's profile has. Then all is healed: within `SETTLE_MS` each
node must serve, each partition must have its leader and all its replicas in sync, and their logs must be the
same. What clients were promised must be in them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import NamedTuple

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.cluster.image import NO_LEADER, ClusterImage, PartitionRegistration
from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC
from pykafka_broker.config.settings import RACK_AWARE_SELECTOR
from pykafka_broker.controller.core.events import BrokerProbed, Moment
from pykafka_broker.controller.core.state import UNCLEAN_LEADER_ELECTION, ControllerState, Decision
from pykafka_broker.controller.core.transitions import TIMED_RULES
from pykafka_broker.controller.role import ControllerRole
from pykafka_broker.protocol.java_hash import string_hash_abs
from pykafka_broker.replication.core.access import READ_COMMITTED, READ_UNCOMMITTED
from pykafka_broker.replication.core.state import Leadership
from pykafka_broker.replication.partition import Partition
from tests.simulation.cluster import chance
from tests.simulation.cluster.administrator import STATE_PARTITIONS, administer
from tests.simulation.cluster.client import TOPIC, Client, Clients, create_topic
from tests.simulation.cluster.committed import WRITTEN, CommittedLogs, batches, name_of
from tests.simulation.cluster.consumers import Consumer
from tests.simulation.cluster.known_log import TopicPartition
from tests.simulation.cluster.ledger import Ledger
from tests.simulation.cluster.machine import Machine
from tests.simulation.cluster.members import KEYS, ClassicMember, ConsumerMember, Member, unshared
from tests.simulation.cluster.node_process import NodeProcess, burying
from tests.simulation.cluster.offsets import commit, look_at_all
from tests.simulation.cluster.producers import write, write_ahead, write_in_transactions, write_once
from tests.simulation.cluster.profile import Profile, draw
from tests.simulation.cluster.remaking import REMADE, ReaderById, Written, label, remake, write_by_id
from tests.simulation.cluster.wires import Host, Wires
from tests.simulation.network import Network
from tests.simulation.violation import Violation, check
from tests.simulation.world import World

#: All nodes serve before the first fault.
START_MS = 20_000
FAULTS_MS = 40_000
SETTLE_MS = 90_000
#: The session time-out of a broker, and the time in which its end is seen.
FENCED_AFTER_MS = 9_000 + 3_000
#: The time in which a broker that is gone is fenced: perhaps after the election of another controller, which
#: gives it a session of its own.
GONE_MS = 2 * FENCED_AFTER_MS
MAX_EVENTS = 400_000

NO_FAULTS: Mapping[str, float] = {}


class Led(NamedTuple):
    """What a leader knew when it was looked at."""

    leadership: Leadership
    high_watermark: int
    log_end_offset: int


class View(NamedTuple):
    """What a node had when it was looked at last."""

    #: Its process, and how often that had run.
    life: tuple[NodeProcess, int]
    #: The ends of its logs, by its number and the partition.
    ends: dict[tuple[int, TopicPartition], int]
    led: dict[TopicPartition, Partition]
    leaderships: dict[TopicPartition, Led]


class Cluster:
    """Everything of one seed."""

    def __init__(
        self, seed: int, faults: Mapping[str, float] = NO_FAULTS, *, transcript: list[str] | None = None
    ) -> None:
        self.world = World(seed, transcript=transcript)
        drawn = draw(self.world.random)
        if seed % 2:
            drawn = drawn._replace(change_ms=500 + 97 * seed % 4500)
        if seed % 3 == 2:
            drawn = drawn._replace(remake_ms=500 + 131 * seed % 4000)
        self.profile: Profile = drawn._replace(**faults)  # type: ignore[arg-type]
        self.network = Network(self.world, self.profile)  # type: ignore[arg-type]
        self.wires = Wires(self.world, self.network)
        self.machines = {
            number: Machine(self.world, self.wires, number, self._keys(number))
            for number in range(1, self.controllers.stop)
        }
        self.ledger = Ledger()
        bootstrap = [Address(self.machines[number].host, 9092) for number in self.brokers]
        self.clients = Clients(
            self.world,
            self.wires,
            bootstrap,
            self.ledger,
            count(1),
            self._is_coordinator,
            self._leader_epoch,
        )
        self._is_faulty = False
        self._has_topic = False
        self._has_lost_power = False
        self._committed = CommittedLogs(self.ledger)
        #: What the machines that serve were last seen to have.
        self._views: dict[int, View] = {}
        #: The leader of each leader epoch of each partition.
        self._leaders: dict[tuple[bytes, int, int], int] = {}
        #: The active controller of each epoch of the metadata log.
        self._controllers: dict[int, int] = {}
        #: The metadata as of an offset, as the first node has published it that was seen at it.
        self._images: dict[int, ClusterImage] = {}
        #: The metadata that each node was last seen to have.
        self._seen_images: dict[int, ClusterImage] = {}
        #: The leader epochs of elections that may have lost records, until their leaders were seen.
        self._unclean: dict[TopicPartition, int] = {}
        #: How many of their leaders were seen.
        self.unclean_leaders = 0
        #: How often a broker was fenced because its process had ended.
        self.early_fencings = 0
        self._members: list[Member] = []
        self._newest_image = ClusterImage()
        #: When a machine was last down, paused, or cut off.
        self._disturbed_ms: dict[int, int] = {}
        #: When a machine was last up.
        self._up_ms: dict[int, int] = {}

    @property
    def brokers(self) -> range:
        """The numbers of the brokers."""
        return range(1, self.profile.brokers + 1)

    @property
    def controllers(self) -> range:
        """The numbers of the controllers: of the brokers, unless the profile separates them."""
        if not self.profile.separate:
            return self.brokers
        return range(self.profile.brokers + 1, 2 * self.profile.brokers + 1)

    def _keys(self, number: int) -> Mapping[str, str]:
        profile = self.profile
        replicas = str(profile.replication_factor)
        listeners: dict[str, str] = {}
        if number in self.brokers:
            listeners["broker"] = f"PLAINTEXT://10.0.0.{number}:9092"
        if number in self.controllers:
            listeners["controller"] = f"CONTROLLER://10.0.0.{number}:9093"
        keys = {
            "process.roles": ",".join(listeners),
            "node.id": str(number),
            "controller.quorum.voters": ",".join(f"{n}@10.0.0.{n}:9093" for n in self.controllers),
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners.values()),
            "min.insync.replicas": str(profile.min_isr),
            "offsets.topic.num.partitions": str(STATE_PARTITIONS),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": str(STATE_PARTITIONS),
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(profile.min_isr),
            "replica.fetch.response.max.bytes": str(profile.replica_fetch_bytes),
            "replica.lag.time.max.ms": str(profile.replica_lag_ms),
            **KEYS,
        }
        if profile.racks:
            keys |= {"broker.rack": rack(number), "replica.selector.class": RACK_AWARE_SELECTOR}
        return keys

    # -- the run ---------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the seed; raise a Violation."""
        with (
            burying(),
            chance.of_seed(self.world.random),
            self.wires.installed(_running),
            self._judging_early_fencing(),
        ):
            try:
                self._run()
            finally:
                self.clients.end()
                for machine in self.machines.values():
                    if machine.is_up:
                        machine.kill()
                self.world.end()

    def _run(self) -> None:
        world, profile = self.world, self.profile
        for machine in self.machines.values():
            world.at(world.random.randint(0, 1000), machine.start)
        world.after_moment = self._look
        check(world.run_until(START_MS, self._all_serve), "the nodes do not start")
        self._start_clients()
        check(world.run_until(world.now_ms + START_MS, lambda: self._has_topic), "the topic is not created")
        self._is_faulty = True
        self._repeat(profile.kill_ms, self._kill)
        self._repeat(profile.power_ms, self._cut_power)
        self._repeat(profile.pause_ms, self._pause)
        self._repeat(profile.partition_ms, self._partition)
        self._repeat(profile.stop_ms, self._stop)
        self._repeat(profile.full_disk_ms, self._fill)
        world.run_until(world.now_ms + FAULTS_MS, self._is_spinning)
        self._heal()
        self._settle()
        shared = world.run_until(world.now_ms + SETTLE_MS, lambda: unshared(self._members) is None)
        check(shared, f"groups do not settle: {unshared(self._members)}")
        self.clients.is_over = True
        done = world.run_until(world.now_ms + SETTLE_MS, lambda: self.clients.running == 0)
        if not done:
            self.ledger.check_markers()
            raise Violation("clients cannot go on")
        self.clients.start(look_at_all(Client(self.clients, "auditor")))
        done = world.run_until(world.now_ms + SETTLE_MS, lambda: self.clients.running == 0)
        check(done, "coordinators do not say what is committed")
        self._settle()
        self.ledger.finished(self._ends())

    def _start_clients(self) -> None:
        profile, clients = self.profile, self.clients
        pause_ms = profile.pause_between_ms

        def created() -> None:
            self._has_topic = True
            if profile.change_ms:
                clients.start(administer(Client(clients, "administrator"), profile, lambda: self._is_faulty))
            if profile.remake_ms:
                admin = Client(clients, "remaker")
                clients.start(
                    remake(admin, profile.replication_factor, profile.remake_ms, lambda: self._is_faulty)
                )
                written: Written = {}
                clients.start(write_by_id(Client(clients, "i0"), written, pause_ms))
                clients.start(ReaderById(Client(clients, "i1"), written).run())
            for number in range(profile.producers):
                clients.start(write(Client(clients, f"p{number}"), profile.partitions, pause_ms))
            for number in range(2 if profile.unclean else 0):
                clients.start(write_once(Client(clients, f"o{number}"), profile.partitions, pause_ms))
            for number in range(profile.transactional):
                client = Client(clients, f"x{number}")
                clients.start(write_in_transactions(client, profile.partitions, pause_ms))
            for number in range(profile.ahead):
                clients.start(write_ahead(Client(clients, f"a{number}"), profile.partitions, 2 * pause_ms))
            for index in range(profile.partitions):
                for level in (READ_UNCOMMITTED, READ_COMMITTED):
                    client = Client(clients, f"c{index}-{level}")
                    # Those of a partition are in two racks, one of which may be the leader's.
                    near = rack(1 + (index + level) % profile.brokers) if profile.racks else ""
                    consumer = Consumer(client, index, level, near, begins_anew=bool(profile.unclean))
                    clients.start(consumer.run())
            for number in range(2):
                clients.start(commit(Client(clients, f"g{number}"), f"group-{number}", pause_ms))
            for number in range(profile.members):
                for kind in (ClassicMember, ConsumerMember):
                    client = Client(clients, f"{kind.__name__}-{number}")
                    member = kind(client, f"group-of-{kind.__name__}", profile.partitions)
                    self._members.append(member)
                    clients.start(member.run())

        admin = Client(clients, "admin")
        configs = {UNCLEAN_LEADER_ELECTION: "true"} if profile.unclean else {}
        clients.start(create_topic(admin, profile.partitions, profile.replication_factor, created, configs))

    def _repeat(self, interval_ms: int, action: Callable[[], None]) -> None:
        """Do something again and again, at times of chance, as long as there are faults."""
        if interval_ms == 0:
            return

        def again() -> None:
            if self._is_faulty:
                action()
                self.world.at(self.world.random.randint(1, 2 * interval_ms), again)

        self.world.at(self.world.random.randint(1, 2 * interval_ms), again)

    def _is_spinning(self) -> bool:
        if self.world.events > MAX_EVENTS:
            raise Violation(f"{self.world.events} events by {self.world.now_ms} ms: a node spins")
        return False

    def _heal(self) -> None:
        self._is_faulty = False
        self.network.heal()
        self.world.note(lambda: "all is healed")
        for machine in self.machines.values():
            machine.paused_until_ms = 0
            machine.make_room()
            machine.start()

    # -- what must hold --------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Look at all nodes after every step: a leader epoch has one leader and one of the metadata log one
        controller, an offset of the metadata has one image, committed batches are the same everywhere and are
        what clients know, those in sync have them and are enough, and brokers are fenced when they are gone,
        and only then.
        """
        self._note_disturbed()
        self._check_gone()
        has_run = [number for number, machine in self.machines.items() if self._has_run(number, machine)]
        if not has_run:
            return
        led: dict[TopicPartition, tuple[int, Partition]] = {}
        ends: dict[tuple[int, TopicPartition], int] = {}
        for number, view in self._views.items():
            ends |= view.ends
            for name, partition in view.led.items():
                if name not in led or led[name][1].leader_epoch < partition.leader_epoch:
                    led[name] = number, partition
        for name, (leader, partition) in led.items():
            self._check_in_sync(leader, name, partition, ends)

    def _has_run(self, number: int, machine: Machine) -> bool:
        """Whether a machine has run since it was looked at last; if so, look at it."""
        if machine.broker is None or machine.process is None or not machine.is_serving:
            return self._views.pop(number, None) is not None
        life = machine.process, machine.process.steps
        if number in self._views and self._views[number].life == life:
            return False
        before = self._views.get(number)
        view = self._views[number] = View(life, {}, {}, {})
        self._check_controller(machine, machine.broker.node.role)
        self._check_image(machine, machine.broker.node.image)
        for partition in self._partitions(machine):
            name = name_of(partition)
            view.ends[number, name] = partition.log.state.log_end_offset
            unclean_epoch = self._unclean.get(name, sys.maxsize)
            if partition.leading is not None and unclean_epoch <= partition.leader_epoch:
                self._keep_what_is_left(number, name, partition)
            if name not in self._unclean and self._is_in_sync(number, name):
                self._committed.compare(number, partition)
            if partition.leading is not None:
                view.led[name] = partition
                key = partition.topic_id, partition.partition, partition.leader_epoch
                leader = self._leaders.setdefault(key, number)
                check(leader == number, f"n{leader} and n{number} lead {partition!r}")
                leadership, state = partition.leading.leadership, partition.log.state
                assert leadership is not None
                now = view.leaderships[name] = Led(leadership, state.high_watermark, state.log_end_offset)
                if before is not None and name in before.leaderships:
                    self._check_min_isr(name, before.leaderships[name], now)
        return True

    def _check_min_isr(self, name: TopicPartition, before: Led, now: Led) -> None:
        """A leader takes records only while enough replicas are in sync, and commits only what enough of them
        have. The ISR that was committed before the step counts as well as the one after it.
        """
        leadership = now.leadership
        if leadership.leader_epoch != before.leadership.leader_epoch:
            return
        where, min_isr = f"n{leadership.node_id} in {name[0]}-{name[1]}", self.profile.min_isr
        in_sync = {*before.leadership.isr.committed, *leadership.isr.committed}
        if now.log_end_offset > before.log_end_offset:
            text = f"{where} has taken {now.log_end_offset} with {in_sync} in sync"
            check(len(in_sync) >= min_isr, text)
        if now.high_watermark > before.high_watermark:
            followers = leadership.followers.items()
            behind = {number for number, one in followers if one.log_end_offset < now.high_watermark}
            text = f"{where} has committed {now.high_watermark} with {in_sync} in sync, and {behind} lack it"
            check(len(in_sync - behind) >= min_isr, text)

    def _note_unclean(self, before: ClusterImage, image: ClusterImage) -> None:
        """Note leaders that may lack records: neither in sync before, nor eligible, nor the last known ones.

        One that more than one election has led to counts as well, since the others were not seen.
        """
        topic, old = image.topics.get(TOPIC), before.topics.get(TOPIC)
        if not self.profile.unclean or topic is None or old is None:
            return
        for index, partition in topic.partitions.items():
            was = old.partitions[index]
            elections = partition.leader_epoch - was.leader_epoch
            if partition.leader == NO_LEADER or elections == 0:
                continue
            if elections > 1 or partition.leader not in (*was.isr, *was.elr, *was.last_known_elr):
                self._unclean[TOPIC, index] = partition.leader_epoch

    def _keep_what_is_left(self, number: int, name: TopicPartition, partition: Partition) -> None:
        """Demand from now on only what such a leader has."""
        del self._unclean[name]
        self.unclean_leaders += 1
        self._committed.keep(number, partition)

    def _is_in_sync(self, number: int, name: TopicPartition) -> bool:
        """Whether a replica is in sync by the newest metadata. One that has lost its power may have other
        records than it had below its high watermark, until it is.
        """
        registration = self._registration(name)
        return registration is not None and number in registration.isr

    def _registration(self, name: TopicPartition) -> PartitionRegistration | None:
        """What the newest metadata says of a partition, by its name in the ledger."""
        topic, index = name
        known = self._newest_image.topics.get(REMADE if topic.startswith(REMADE) else topic)
        if known is None or label(known.name, known.topic_id) != topic:
            return None
        return known.partitions.get(index)

    def _check_in_sync(
        self,
        leader: int,
        name: TopicPartition,
        partition: Partition,
        ends: Mapping[tuple[int, TopicPartition], int],
    ) -> None:
        """Every replica that leader and controller count as in sync has what the leader has committed."""
        registration = self._registration(name)
        leadership = None if partition.leading is None else partition.leading.leadership
        if registration is None or leadership is None:
            return
        if registration.leader != leader or registration.partition_epoch != leadership.partition_epoch:
            return
        committed = max(partition.log.state.high_watermark, self.ledger.end_of(name))
        for member in registration.isr:
            end = ends.get((member, name), 0 if member in self._views else committed)
            check(
                end >= committed,
                f"n{member} is in sync with n{leader} in {name[0]}-{name[1]} and has {end} of {committed}",
            )

    def _note_disturbed(self) -> None:
        """Note the machines that are down, paused, cut off from others, or full."""
        now_ms, cut = self.world.now_ms, {number for link in self.network.cut for number in link}
        for number, machine in self.machines.items():
            is_held_up = machine.paused_until_ms > now_ms or machine.is_full or number in cut
            if not machine.is_serving or is_held_up:
                self._disturbed_ms[number] = now_ms
            if machine.is_up:
                self._up_ms[number] = now_ms

    def _check_gone(self) -> None:
        """A broker that is down is fenced, if nothing ails the others, of which one is the controller."""
        now_ms = self.world.now_ms
        for number, up_ms in self._up_ms.items():
            others_ms = max(at for other, at in self._disturbed_ms.items() if other != number)
            if now_ms - max(up_ms, others_ms) > GONE_MS:
                broker = self._newest_image.brokers.get(number)
                check(broker is None or broker.fenced, f"n{number} is gone since {up_ms} ms and not fenced")

    def _check_controller(self, machine: Machine, role: ControllerRole | None) -> None:
        if role is not None and role.is_active:
            epoch = role.active._log.epoch
            controller = self._controllers.setdefault(epoch, machine.number)
            check(
                controller == machine.number,
                f"n{controller} and {machine} are active controllers in epoch {epoch}",
            )

    def _is_coordinator(self, number: int, group: str) -> bool:
        """Whether a node coordinates a group by the newest metadata."""
        topic = self._newest_image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return False
        return topic.partitions[string_hash_abs(group) % len(topic.partitions)].leader == number

    def _leader_epoch(self, number: int, index: int) -> int | None:
        """The leader epoch of a partition of the topic that a node knows; None if it does not serve."""
        partition = self._hosted(number, TOPIC, index) if self.machines[number].is_serving else None
        return None if partition is None else partition.leader_epoch

    def _check_fenced(self, before: ClusterImage, image: ClusterImage) -> None:
        """A broker that has lived and been heard all the time keeps its session."""
        for number, broker in image.brokers.items():
            known = before.brokers.get(number)
            if broker.fenced and known is not None and not known.fenced:
                quiet_ms = self.world.now_ms - self._disturbed_ms.get(number, 0)
                check(quiet_ms <= FENCED_AFTER_MS, f"n{number} is fenced, and nothing ailed it")

    def _check_led_by_live(self, image: ClusterImage) -> None:
        """No fenced broker leads, nor is it in sync with a leader."""
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                if partition.leader != NO_LEADER:
                    fenced = [member for member in partition.isr if image.brokers[member].fenced]
                    check(
                        not fenced,
                        f"{topic.name}-{index} is with {partition.isr}, of which {fenced} are fenced",
                    )

    def _check_image(self, machine: Machine, image: ClusterImage) -> None:
        if self._seen_images.get(machine.number) is image:
            return
        self._seen_images[machine.number] = image
        if image.offset > self._newest_image.offset:
            self._note_unclean(self._newest_image, image)
            self._check_fenced(self._newest_image, image)
            self._check_led_by_live(image)
            self._newest_image = image
        first = self._images.setdefault(image.offset, image)
        if first is image:
            return
        for name, one, other in zip(image._fields, first, image, strict=True):
            if one != other:
                raise Violation(f"{machine} has other {name} at offset {image.offset}: {other}, not {one}")

    @contextmanager
    def _judging_early_fencing(self) -> Iterator[None]:
        """A broker that is fenced before its session is over has ended, paused and cut off as it may be."""
        decide = TIMED_RULES[BrokerProbed]

        def judged(state: ControllerState, event: BrokerProbed, moment: Moment) -> Decision:
            decision = decide(state, event, moment)
            if decision.records:
                self.early_fencings += 1
                machine = self.machines[event.broker_id]
                lives = (
                    machine.is_serving
                    and machine.broker is not None
                    and machine.broker.node.image.brokers[event.broker_id].epoch == event.broker_epoch
                )
                check(not lives, f"{machine} is fenced at {state.image.offset} although it lives")
            return decision

        TIMED_RULES[BrokerProbed] = judged
        try:
            yield
        finally:
            TIMED_RULES[BrokerProbed] = decide

    def _partitions(self, machine: Machine) -> list[Partition]:
        if machine.number not in self.brokers:
            return []
        assert machine.broker is not None
        replicas = machine.broker.node.broker.replicas
        found = [
            replicas.hosted(topic.name, index)
            for topic in machine.broker.node.image.topics.values()
            for index in topic.partitions
        ]
        return [partition for partition in found if partition is not None]

    def _all_serve(self) -> bool:
        self._is_spinning()
        return all(machine.is_serving for machine in self.machines.values())

    def _settle(self) -> None:
        """Wait until all is well. Where a replica stays out of sync, its log is judged, which says more."""
        if self.world.run_until(self.world.now_ms + SETTLE_MS, self._has_settled):
            return
        unsettled = self._unsettled()
        for number, machine in self.machines.items():
            for partition in self._partitions(machine) if machine.is_serving else ():
                self._committed.compare_all(number, partition)
        raise Violation(f"the cluster does not settle: {unsettled}")

    def _has_settled(self) -> bool:
        return self._all_serve() and self._unsettled() is None

    def _unsettled(self) -> str | None:
        """The first thing that is not as it should be when all is well and clients rest."""
        return self._out_of_sync() or self._unequal()

    def _out_of_sync(self) -> str | None:
        """The first thing that keeps a machine from being lost without harm."""
        for machine in self.machines.values():
            if machine.broker is None or not machine.is_serving:
                return f"{machine} does not serve"
        images = [machine.broker.node.image for machine in self.machines.values() if machine.broker]
        if len({image.offset for image in images}) > 1:
            return "the nodes have not the same metadata"
        for broker_id, broker in images[0].brokers.items():
            if broker.fenced:
                return f"broker {broker_id} is fenced"
        for topic in images[0].topics.values():
            for index, registration in topic.partitions.items():
                if set(registration.isr) != set(registration.replicas) or registration.leader < 0:
                    return f"{topic.name}-{index}: {registration}"
        return None

    def _unequal(self) -> str | None:
        """The first partition whose replicas do not end at the same offset."""
        broker = self.machines[1].broker
        assert broker is not None
        for topic in broker.node.image.topics.values():
            for index, registration in topic.partitions.items():
                ends = {self._end_of(node_id, topic.name, index) for node_id in registration.replicas}
                if len(ends) > 1:
                    return f"{topic.name}-{index}: the replicas end at {ends}"
        return None

    def _end_of(self, node_id: int, topic: str, index: int) -> int:
        partition = self._hosted(node_id, topic, index)
        return -1 if partition is None else partition.log.state.log_end_offset

    def _hosted(self, node_id: int, topic: str, index: int) -> Partition | None:
        broker = self.machines[node_id].broker
        assert broker is not None
        return broker.node.broker.replicas.hosted(topic, index)

    def _ends(self) -> dict[TopicPartition, int]:
        """The ends of the logs that clients have written, which are the same on all replicas."""
        broker = self.machines[1].broker
        assert broker is not None
        ends: dict[TopicPartition, int] = {}
        for topic in broker.node.image.topics.values():
            for index, registration in topic.partitions.items():
                contents = set()
                for node_id in registration.replicas:
                    partition = self._hosted(node_id, topic.name, index)
                    assert partition is not None
                    contents.add(_content(partition))
                    if topic.name in WRITTEN:
                        self._committed.compare_all(node_id, partition)
                        ends[name_of(partition)] = partition.log.state.log_end_offset
                same = len(contents) == 1
                check(same, f"{topic.name}-{index} is not the same on {registration.replicas}")
        return ends

    # -- faults ----------------------------------------------------------------------------------------------

    def _any(self) -> Machine:
        return self.machines[self.world.random.randint(1, len(self.machines))]

    def _restart_later(self, machine: Machine, longer_ms: int = 0) -> None:
        down_ms = self.world.random.choice((5, 500, 3000, 12_000)) + longer_ms
        self.world.at(down_ms, machine.start)

    def _kill(self) -> None:
        """Not while a machine that lost its power is on its way back: a broker that was killed and comes back
        counts as one that may lack records (KIP-966), and with the last one a partition loses what it had.
        """
        if self._has_lost_power and not self._has_settled():
            return
        self._has_lost_power = False
        machine = self._any()
        machine.kill()
        self._restart_later(machine)

    def _cut_power(self) -> None:
        """Only one machine at a time, and not before all are back in sync: else promises may be lost. What a
        leader has and the others have not yet was never promised.
        """
        if self._out_of_sync() is None:
            machine = self._any()
            machine.cut_power()
            self._has_lost_power = True
            self._restart_later(machine, self.profile.longer_down_ms)

    def _pause(self) -> None:
        machine = self._any()
        machine.paused_until_ms = self.world.now_ms + self.world.random.choice((100, 3000, 12_000))

    def _partition(self) -> None:
        if self.network.cut:
            self.network.cut = set()
        else:
            self.network.partition(self.machines)

    def _fill(self) -> None:
        """Fill one disk at a time, for a while."""
        if not any(machine.is_full for machine in self.machines.values()):
            machine = self._any()
            machine.fill(self.world.random.choice((0, 500, 20_000)))
            self.world.at(self.world.random.choice((500, 5_000, 15_000)), machine.make_room)

    def _stop(self) -> None:
        machine = self._any()
        if self.world.now_ms >= machine.paused_until_ms:
            machine.stop(partial(self._restart_later, machine))


def rack(number: int) -> str:
    """The rack of a broker."""
    return f"rack-{number}"


def _running() -> tuple[Host, NodeProcess]:
    process = NodeProcess.running
    assert process is not None
    return process.host, process


def _content(partition: Partition) -> bytes:
    """All batches of a log."""
    state = partition.log.state
    return b"".join(
        bytes(batch) for _, batch in batches(partition, state.log_start_offset, state.log_end_offset)
    )


def run(seed: int, faults: Mapping[str, float] = NO_FAULTS) -> int:
    """Run a seed, with these values in its profile; return its number of events.

    Raises:
        Violation: with a transcript.
    """
    cluster = Cluster(seed, faults)
    try:
        cluster.run()
    except Exception as error:
        again: list[str] = []
        try:
            Cluster(seed, faults, transcript=again).run()
        except Exception as repeated:
            again.append(f"{type(repeated).__name__}: {repeated}")
        text = f"cluster seed {seed}: {type(error).__name__}: {error}"
        raise Violation("\n".join([text, f"{cluster.profile}", *again[-200:]])) from error
    return cluster.world.events
