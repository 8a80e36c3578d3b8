"""The same load on Apache Kafka under the JMX exporter, and here: the same names, labels and values."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.metrics.families import FAMILIES
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.apache.jars import VERSION, fetched
from pykafka_broker.testing.apache.tools import SHORT_LIVED
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.processes import free_port
from pykafka_broker.testing.user import User
from tests.metrics.pages import METRICS, Samples, samples_of, scrape
from tests.support.sasl import ALICE, AT_ONCE, BOB, PLAIN_LISTENER, WRONG, authenticate

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent
LOADED = ("orders", "payments", "small", "compacted")

#: Names of which the values are the same after the same load; those of requests for `COUNTED`.
COUNTERS = tuple(
    f"kafka_server_brokertopicmetrics_{name}_total"
    for name in (
        *("messagesin", "bytesin", "bytesout", "bytesrejected", "totalproducerequests"),
        *("failedproducerequests", "totalfetchrequests", "failedfetchrequests"),
        *("replicationbytesin", "replicationbytesout", "invalidmessagecrcrecords"),
        *("invalidoffsetorsequencerecords", "nokeycompactedtopicrecords"),
        *("reassignmentbytesin", "reassignmentbytesout"),
    )
)
REQUESTS = (
    "kafka_network_requestmetrics_requests_total",
    "kafka_network_requestmetrics_errors_total",
    *(
        f"kafka_network_requestmetrics_{stage}_count"
        for stage in (
            *("requestbytes", "requestqueuetimems", "localtimems", "remotetimems", "throttletimems"),
            *("responsequeuetimems", "responsesendtimems", "totaltimems"),
        )
    ),
)
COUNTED = ("Produce", "Fetch", "FetchConsumer")
OF_PARTITIONS = (
    *(
        f"kafka_cluster_partition_{name}"
        for name in (
            *("underreplicated", "insyncreplicascount", "replicascount", "underminisr", "atminisr"),
            "laststableoffsetlag",
        )
    ),
    *(f"kafka_log_log_{name}" for name in ("size", "numlogsegments", "logstartoffset", "logendoffset")),
)
OF_THE_NODE = (
    *(
        f"kafka_server_replicamanager_{name}"
        for name in (
            *("partitioncount", "leadercount", "underreplicatedpartitions", "underminisrpartitioncount"),
            *("atminisrpartitioncount", "reassigningpartitions", "offlinereplicacount", "produceridcount"),
            "partitionswithlatetransactionscount",
            *("isrshrinks_total", "isrexpands_total", "failedisrupdates_total"),
        )
    ),
    *(
        f"kafka_controller_kafkacontroller_{name}"
        for name in (
            *("activecontrollercount", "activebrokercount", "fencedbrokercount", "globaltopiccount"),
            *("globalpartitioncount", "offlinepartitionscount", "preferredreplicaimbalancecount"),
            *("newactivecontrollerscount", "controlledshutdownbrokercount", "brokerregistrationstate"),
            "timedoutbrokerheartbeatcount",
        )
    ),
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_server_raftmetrics_current_leader",
    "kafka_server_raftmetrics_current_vote",
    "kafka_server_raftmetrics_current_epoch",
    "kafka_server_raftmetrics_current_state",
    "kafka_server_raftmetrics_number_of_voters",
    "kafka_server_authorizer_metrics_acls_total_count",
)
#: The numbers of groups are missing: Apache Kafka takes them once a minute.
GROUPS = tuple(
    f"kafka_server_group_coordinator_metrics_{name}_count"
    for name in (
        *("group_completed_rebalance", "offset_commit", "consumer_group_rebalance"),
        *("share_group_rebalance", "streams_group_rebalance"),
    )
)
LOGINS = tuple(
    f"kafka_server_socket_server_metrics_{result}_total"
    for result in (
        *("successful_authentication", "failed_authentication"),
        *("successful_reauthentication", "failed_reauthentication"),
    )
)
#: Their values depend on when they are read.
QUOTAS = (
    "kafka_server_produce_byte_rate",
    "kafka_server_fetch_byte_rate",
    "kafka_server_request_request_time",
    "kafka_server_controllermutation_tokens",
    *(
        f"kafka_server_{quota}_throttle_time"
        for quota in ("produce", "fetch", "request", "controllermutation")
    ),
)

#: Of both: a listener that asks for a login beside the one that does not, whose users may do everything.
SECURITY = AT_ONCE | {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": PLAIN_LISTENER[
        "listener.name.clients.plain.sasl.jaas.config"
    ],
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
#: So high that nothing is throttled.
QUOTA = AlterClientQuotasRequest(
    entries=[
        AlterClientQuotasRequestEntryData(
            entity=[
                EntityData(entity_type="user", entity_name=None),
                EntityData(entity_type="client-id", entity_name=None),
            ],
            ops=[
                OpData(key=key, value=1e9, remove=False)
                for key in (
                    *("producer_byte_rate", "consumer_byte_rate", "request_percentage"),
                    "controller_mutation_rate",
                )
            ],
        )
    ],
    validate_only=False,
)
ACL = CreateAclsRequest(
    creations=[
        AclCreation(
            resource_type=2,
            resource_name="orders",
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        )
    ]
)


async def load(address: str, clients: str) -> list[ErrorCode]:
    """Write to topics and read from them, log in at `clients`, and meet an ACL; the errors in the answers."""
    async with await User.connect(address) as user:
        await user.send(QUOTA, 1)
        await user.send(ACL, 3)
        await user.create_topic("orders", partitions=2)
        await user.create_topic("payments", message_timestamp_before_max_ms="1000")
        await user.create_topic("small", max_message_bytes="100")
        await user.create_topic("compacted", cleanup_policy="compact")
        for topic, partitions in (("orders", 2), ("payments", 1), ("small", 1), ("compacted", 1)):
            for partition in range(partitions):
                while not await is_led(user, topic, partition):
                    pass
        await user.produce("orders", b"one", b"two")
        await user.produce("orders", b"three")
        await user.produce("orders", b"a", b"b", b"c", partition=1)
        refused: list[Any] = [
            await user.try_to_produce("small", b"x" * 200),
            await user.try_to_produce("payments", b"one", timestamp=1),
            await user.try_to_produce("payments", b"one", producer_id=7, producer_epoch=0),
            await user.try_to_produce("compacted", b"one", b"two"),
        ]
        for offset in (0, 2, 3):
            await user.fetch("orders", offset)
        await use_groups(user)
    for token in (ALICE, ALICE, WRONG):
        async with await User.connect(clients) as user:
            refused.append(await authenticate(user, token=token))
    async with await User.connect(clients) as user:
        await authenticate(user, token=BOB)
        denied = await user.try_to_create_topic("denied")
    return [*(ErrorCode(answer.error_code) for answer in refused), denied]


async def use_groups(user: User) -> None:
    """Commit an offset without being a member; join and leave a consumer group."""
    while True:
        with contextlib.suppress(AssertionError):
            await user.commit("readers", "orders", 1)
            break
    joining = ConsumerGroupHeartbeatRequest(
        group_id="consumers",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    while (await user.send(joining, 1)).error_code:
        pass
    leaving = ConsumerGroupHeartbeatRequest(group_id="consumers", member_id="m", member_epoch=-1)
    assert not (await user.send(leaving, 1)).error_code


async def is_led(user: User, topic: str, partition: int) -> bool:
    """Whether the broker leads the partition already; no metric that is compared counts the question."""
    with contextlib.suppress(AssertionError):
        await user.offset_for(topic, -1, partition=partition)
        return True
    return False


@pytest.fixture(scope="module")
def apache() -> Iterator[Samples]:
    """What Apache Kafka tells after the load."""
    [agent] = fetched("jmx-exporter", FOLDER / "jmx-exporter.pom.xml", VERSION).iterdir()
    where = f"127.0.0.1:{free_port()}"
    broker, clients = ApacheBroker(), f"127.0.0.1:{free_port()}"
    broker.properties |= SECURITY | {
        "listeners": f"PLAINTEXT://{broker.address},CLIENTS://{clients},CONTROLLER://{broker.controller_address}",
        "num.network.threads": "1",
    }
    rules = FOLDER / "jmx-exporter.yml"
    broker.jvm_options = (*SHORT_LIVED, f"-javaagent:{agent.resolve()}={where}:{rules}")
    with broker:
        assert asyncio.run(load(broker.address, clients)) == REFUSED
        with urllib.request.urlopen(f"http://{where}/metrics") as page:
            yield samples_of(page.read().decode())


@pytest.fixture(scope="module")
def ours() -> Samples:
    async def loaded() -> Samples:
        listeners = {
            "listeners": "PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:0",
            "metrics.listeners": METRICS,
        }
        home = Home(SECURITY | listeners, clock=SystemClock(), listen=None)
        async with home.new_broker():
            addresses = [address_of(home, name) for name in ("PLAINTEXT", "CLIENTS")]
            assert await load(*addresses) == REFUSED
            return await scrape(home.broker)

    return asyncio.run(loaded())


REFUSED = [
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_RECORD,
    ErrorCode.NONE,
    ErrorCode.NONE,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
]


def address_of(home: Home, listener: str) -> str:
    host, port = home.broker.node.listeners.listeners[listener].address
    return f"{host}:{port}"


def chosen(samples: Samples, name: str) -> dict[frozenset[tuple[str, str]], float]:
    """The samples of a name that the load decides; Apache Kafka has a network thread for each listener."""
    found = {}
    for (its_name, labels), value in samples.items():
        values = dict(labels)
        is_loaded = values.get("topic") in (None, *LOADED)
        is_told = values.get("request") in (None, *COUNTED) and values.get("listener") != "CONTROLLER"
        # Apache Kafka's broker is a client of its controller.
        is_told &= values.get("client_id") != "1"
        if its_name == name and is_loaded and is_told:
            values.pop("networkProcessor", None)
            found[frozenset(values.items())] = value
    return found


@pytest.mark.parametrize("name", [*COUNTERS, *REQUESTS, *OF_PARTITIONS, *OF_THE_NODE, *GROUPS, *LOGINS])
def test_what_apache_counts_we_count(apache: Samples, ours: Samples, name: str) -> None:
    theirs = chosen(apache, name)

    # Apache Kafka has a counter of a topic once it has counted.
    assert {
        labels: value for labels, value in chosen(ours, name).items() if value or labels in theirs
    } == theirs
    assert theirs


@pytest.mark.parametrize("name", QUOTAS)
def test_clients_whose_use_apache_shows_are_shown(apache: Samples, ours: Samples, name: str) -> None:
    shown, theirs = chosen(ours, name).keys(), chosen(apache, name).keys()

    if "controllermutation" in name:
        # Apache Kafka shows who has asked for a mutation and was denied, too.
        assert set() != shown <= theirs
    else:
        assert shown == theirs != set()


def test_what_is_declared_as_kafkas_is_kafkas(apache: Samples) -> None:
    known = {name for name, _ in apache}
    # No rule of the exporter's names the first; the others are on followers, in a start, or after a time-out.
    unknown_to_rules = (
        *("kafka_coordinator_", "jvm_"),
        *("kafka_server_fetcherlagmetrics_", "kafka_log_logmanager_remaininglogstorecover"),
        *("kafka_server_delayedfetchmetrics_", "kafka_server_delayedproducemetrics_"),
    )
    invented = [
        family.name
        for family in FAMILIES
        if family.mbean
        and family.name not in known
        and not family.name.startswith(unknown_to_rules)
        and not family.name.endswith("connections_software")
    ]

    assert invented == []


def test_labels_are_those_of_apache(apache: Samples, ours: Samples) -> None:
    theirs = {(name, frozenset(label for label, _ in labels)) for name, labels in apache}
    own = {
        (name, frozenset(label for label, _ in labels))
        for (name, labels), value in ours.items()
        # Apache Kafka has a counter of a topic once it has counted.
        if value or not name.endswith("_total")
    }
    names = {name for name, _ in theirs} & {name for name, _ in own if name.startswith("kafka_")}

    assert {one for one in own - theirs if one[0] in names} == set()
