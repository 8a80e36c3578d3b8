"""What a scrape tells of a node: its topics, requests, partitions, groups and its part in the quorum."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest_asyncio

from pykafka_broker.metrics.families import FAMILIES
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from pykafka_broker.testing.home import PATIENCE_SECONDS, Home, until
from pykafka_broker.testing.user import User
from tests.apis.asking import open_transaction
from tests.metrics.pages import METRICS, Samples, scrape, value
from tests.support.clusters import Cluster

TOPIC = "kafka_server_brokertopicmetrics"
REQUEST = "kafka_network_requestmetrics"

#: The names of which Strimzi's dashboards for Kafka, KRaft and the Kafka exporter, and its alerts, show data.
ASKED_FOR = [
    "jvm_gc_collection_seconds_count",
    "jvm_gc_collection_seconds_sum",
    "jvm_memory_used_bytes",
    "jvm_threads_current",
    "kafka_broker_info",
    "kafka_cluster_partition_atminisr",
    "kafka_cluster_partition_replicascount",
    "kafka_cluster_partition_underminisr",
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_lag",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_log_log_size",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    "kafka_server_raftchannelmetrics_incoming_byte_total",
    "kafka_server_raftchannelmetrics_outgoing_byte_total",
    "kafka_server_raftchannelmetrics_request_total",
    "kafka_server_raftchannelmetrics_response_total",
    "kafka_server_raftmetrics_append_records_rate",
    "kafka_server_raftmetrics_commit_latency_avg",
    "kafka_server_raftmetrics_current_epoch",
    "kafka_server_raftmetrics_current_leader",
    "kafka_server_raftmetrics_current_state",
    "kafka_server_raftmetrics_current_vote",
    "kafka_server_raftmetrics_fetch_records_rate",
    "kafka_server_raftmetrics_high_watermark",
    "kafka_server_raftmetrics_log_end_offset",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_in_sync_replica",
    "kafka_topic_partition_leader_is_preferred",
    "kafka_topic_partition_oldest_offset",
    "kafka_topic_partition_replicas",
    "kafka_topic_partition_under_replicated_partition",
    "kafka_topic_partitions",
    "process_open_fds",
]


CREATION = CreateTopicsRequest(
    topics=[
        CreatableTopic(
            name="orders",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])],
            configs=[],
        )
    ]
)


@pytest_asyncio.fixture
async def home() -> AsyncIterator[Home]:
    yield Home({"metrics.listeners": METRICS})


async def test_batches_count_to_their_topic_and_to_all(home: Home) -> None:
    async with home.running() as user:
        for topic in ("orders", "payments"):
            await user.create_topic(topic)
        await user.produce("orders", b"one", b"two")
        await user.produce("payments", b"three")
        read = await user.values("orders")
        found = await scrape(home.broker)

    assert read == [b"one", b"two"]
    messages = f"{TOPIC}_messagesin_total"
    assert [value(found, messages, topic=topic) for topic in ("orders", "payments")] == [2, 1]
    assert value(found, messages) == 3
    size = value(found, "kafka_log_log_size", topic="orders", partition="0")
    assert value(found, f"{TOPIC}_bytesin_total", topic="orders") == size
    assert value(found, f"{TOPIC}_bytesout_total", topic="orders") == size
    assert value(found, f"{TOPIC}_bytesout_total", topic="payments") == 0
    assert value(found, f"{TOPIC}_totalproducerequests_total") == 2


async def test_a_refused_batch_counts_as_the_error_says(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("orders", max_message_bytes="100")
        refused = await user.try_to_produce("orders", b"x" * 200)
        await user.create_topic("payments", message_timestamp_before_max_ms="1000")
        old = await user.try_to_produce("payments", b"one", timestamp=1)
        unnumbered = await user.try_to_produce("payments", b"one", producer_id=7, producer_epoch=0)
        await user.create_topic("compacted", cleanup_policy="compact")
        keyless = await user.try_to_produce("compacted", b"one", b"two")
        found = await scrape(home.broker)

    codes = [ErrorCode(answer.error_code) for answer in (refused, old, unnumbered, keyless)]
    assert codes == [
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_RECORD,
    ]
    failed = f"{TOPIC}_failedproducerequests_total"
    assert [value(found, failed, topic=topic) for topic in ("orders", "payments", "compacted")] == [0, 2, 1]
    assert value(found, f"{TOPIC}_invalidoffsetorsequencerecords_total") == 1
    assert value(found, f"{TOPIC}_nokeycompactedtopicrecords_total") == 2
    assert (value(found, f"{TOPIC}_bytesrejected_total", topic="orders") or 0) > 200
    assert value(found, f"{TOPIC}_bytesin_total") == 0
    assert value(found, f"{TOPIC}_totalproducerequests_total", topic="orders") == 1


async def test_the_sums_over_all_topics_outlive_a_topic(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one")
        await user.delete_topic("orders")
        found = await scrape(home.broker)

    assert value(found, f"{TOPIC}_messagesin_total", topic="orders") is None
    assert value(found, f"{TOPIC}_messagesin_total") == 1


async def test_requests_count_by_version_error_and_time(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("orders")
        for _ in range(3):
            await user.produce("orders", b"one")
        first = await scrape(home.broker)
        await user.produce("orders", b"one")
        found = await scrape(home.broker)

    [(labels, produced)] = of(found, f"{REQUEST}_requests_total", request="Produce").items()
    assert (set(labels), produced) == ({("request", "Produce"), ("version", "12")}, 4)
    assert value(found, f"{REQUEST}_errors_total", request="Produce", error="NONE") == 4
    for stage in ("totaltimems", "localtimems", "remotetimems", "requestbytes"):
        assert value(first, f"{REQUEST}_{stage}_count", request="Produce") == 3
        assert value(found, f"{REQUEST}_{stage}_count", request="Produce") == 4
    halves = [
        value(found, f"{REQUEST}_totaltimems", request="Produce", quantile=q) for q in ("0.50", "0.999")
    ]
    assert 0 < (halves[0] or 0) <= (halves[1] or 0)


async def test_a_parked_fetch_counts_as_remote_time(home: Home) -> None:
    async with home.running() as user, await User.connect(home.broker.bootstrap_servers) as reader:
        await user.create_topic("orders")
        waiting = asyncio.ensure_future(reader.fetch("orders", max_wait_ms=60_000))
        await until(lambda: home.broker.node.broker.purgatory.parked)
        parked = await scrape(home.broker)
        await user.produce("orders", b"one")
        await waiting
        impatient = asyncio.ensure_future(reader.fetch("orders", 1, max_wait_ms=1_000))
        await until(lambda: home.broker.node.broker.purgatory.parked)
        await home.pass_time(1_000)
        await impatient
        found = await scrape(home.broker)

    expired = [
        value(one, "kafka_server_delayedfetchmetrics_expires_total", fetcherType="consumer")
        for one in (parked, found)
    ]
    assert expired == [0, 1]
    waiting_fetches = "kafka_server_delayedoperationpurgatory_numdelayedoperations"
    assert [value(one, waiting_fetches, delayedOperation="Fetch") for one in (parked, found)] == [1, 0]
    remote = f"{REQUEST}_remotetimems"
    for name in ("Fetch", "FetchConsumer"):
        assert value(parked, remote, request=name, quantile="0.99") == 0
        assert (value(found, remote, request=name, quantile="0.99") or 0) > 0


async def test_a_produce_that_waits_for_its_sync_is_counted_until_it_is_answered(home: Home) -> None:
    gate = threading.Event()
    waiting = []

    def meanwhile(operation: str, path: str) -> None:
        if operation == "sync" and "orders" in path:
            waiting.append(path)
            gate.wait()

    async with home.running() as user, await User.connect(home.broker.bootstrap_servers) as writer:
        await user.create_topic("orders", flush_messages="1")
        await user.produce("orders", b"one")
        home.files.meanwhile = meanwhile
        writing = asyncio.ensure_future(writer.produce("orders", b"two", acks=-1))
        await until(lambda: waiting)
        parked = await scrape(home.broker)
        gate.set()
        await writing
        found = await scrape(home.broker)

    for name in ("numdelayedoperations", "purgatorysize"):
        name = f"kafka_server_delayedoperationpurgatory_{name}"
        assert [value(one, name, delayedOperation="Produce") for one in (parked, found)] == [1, 0]
    flushes = "kafka_log_logflushstats_logflushrateandtimems"
    assert (value(found, f"{flushes}_count") or 0) > (value(parked, f"{flushes}_count") or 0) > 0
    assert (value(found, flushes, quantile="0.999") or 0) > 0


async def test_the_cleaner_tells_when_it_looked_and_how_dirty_the_logs_were(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("orders", internal_segment_bytes="1000", min_cleanable_dirty_ratio="1")
        for _ in range(10):
            await user.produce("orders", bytes(300))
        await user.alter_topic("orders", cleanup_policy="compact")
        dirty, age = (
            (f"kafka_log_logcleanermanager_{name}", frozenset[tuple[str, str]]())
            for name in ("max_dirty_percent", "time_since_last_run_ms")
        )
        # Time passes while a thread still looks; the next look is due 15 s after it has ended.
        async with asyncio.timeout(PATIENCE_SECONDS):
            await home.pass_time(20_000)
            while not ((found := await scrape(home.broker))[dirty] == 100 and 0 <= found[age] <= 15_000):
                await home.pass_time(1_000)

    assert value(found, "kafka_log_logcleaner_max_clean_time_secs") == 0


async def test_a_lag_is_what_a_group_has_still_to_read(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("orders", partitions=2)
        await user.produce("orders", b"one", b"two", b"three")
        await user.commit("readers", "orders", 1)
        found = await scrape(home.broker)

    of_partition = {"consumergroup": "readers", "topic": "orders", "partition": "0"}
    assert value(found, "kafka_consumergroup_current_offset", **of_partition) == 1
    assert value(found, "kafka_consumergroup_lag", **of_partition) == 2
    assert value(found, "kafka_consumergroup_lag_sum", consumergroup="readers", topic="orders") == 2
    assert value(found, "kafka_server_group_coordinator_metrics_group_count", protocol="classic") == 1
    assert value(found, "kafka_coordinator_group_groupmetadatamanager_numgroupsempty") == 1
    assert value(found, "kafka_consumergroup_members", consumergroup="readers") == 0
    coordinator = "kafka_server_group_coordinator_metrics"
    states = {
        state: value(found, f"{coordinator}_num_partitions", state=state)
        for state in ("loading", "active", "failed")
    }
    assert states == {"loading": 0, "active": 50, "failed": 0}
    assert (value(found, f"{coordinator}_partition_load_time_max") or 0) > 0
    assert value(found, f"{coordinator}_streams_group_count", state="NotReady") == 0
    assert value(found, "kafka_server_group_coordinator_metrics_offset_commit_count") == 1
    assert value(found, "kafka_server_group_coordinator_metrics_group_completed_rebalance_count") == 0


async def test_a_transaction_is_late_five_minutes_after_the_longest_time_out(home: Home) -> None:
    async with home.running() as user:
        for producer_id, (topic, age_ms) in enumerate((("late", 1_200_001), ("old", 1_200_000))):
            await user.create_topic(topic)
            await open_transaction(home, topic, producer_id, b"one", age_ms=age_ms)
        await user.create_topic("plain")
        await user.produce("plain", b"one", timestamp=1)
        found = await scrape(home.broker)

    assert value(found, "kafka_server_replicamanager_partitionswithlatetransactionscount") == 1


async def test_a_dead_follower_shows_on_the_leader() -> None:
    cluster = Cluster(1, brokers=1, overrides={"metrics.listeners": METRICS, "min.insync.replicas": "2"})
    least_rate = "kafka_server_replicafetchermanager_minfetchrate"
    async with cluster.running(), cluster.user_of(1) as user:
        await user.send(CREATION, 7)
        await cluster.agree((1, 2))
        await user.produce("orders", b"one", acks=-1)
        leader, follower = await scrape(cluster.broker(1)), await scrape(cluster.broker(2))
        assert value(follower, least_rate, clientId="Replica") == 0, "it has had no time to grow"
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not value(await scrape(cluster.broker(2)), least_rate, clientId="Replica"):
                await user.produce("orders", b"more", acks=-1)
        await cluster.broker(2).kill()
        await until(lambda: cluster.broker(1).node.image.brokers[2].fenced)
        alone = await scrape(cluster.broker(1))

    place = {"topic": "orders", "partition": "0"}
    for name, before, after in (
        ("kafka_cluster_partition_insyncreplicascount", 2, 1),
        ("kafka_cluster_partition_replicascount", 2, 2),
        ("kafka_cluster_partition_underreplicated", 0, 1),
        ("kafka_cluster_partition_underminisr", 0, 1),
        ("kafka_cluster_partition_atminisr", 1, 0),
        ("kafka_topic_partition_under_replicated_partition", 0, 1),
    ):
        assert (value(leader, name, **place), value(alone, name, **place)) == (before, after), name
    assert value(follower, "kafka_cluster_partition_replicascount", **place) == 0
    [(labels, lag)] = of(follower, "kafka_server_fetcherlagmetrics_consumerlag", **place).items()
    assert (dict(labels)["clientId"], lag) == ("ReplicaFetcherThread-0-1", 0)
    assert value(follower, "kafka_server_replicafetchermanager_maxlag", clientId="Replica") == 0
    assert (
        value(follower, "kafka_server_replicafetchermanager_failedpartitionscount", clientId="Replica") == 0
    )
    assert not of(leader, "kafka_server_fetcherlagmetrics_consumerlag")
    assert value(leader, "kafka_controller_kafkacontroller_newactivecontrollerscount") == 1
    started = "kafka_controller_kafkacontroller_eventqueueoperationsstartedcount"
    assert 0 < (value(leader, started) or 0) < (value(alone, started) or 0)
    assert value(follower, f"{TOPIC}_replicationbytesin_total") == value(leader, f"{TOPIC}_bytesin_total")
    assert value(leader, f"{TOPIC}_replicationbytesout_total") == value(leader, f"{TOPIC}_bytesin_total")
    assert value(leader, f"{TOPIC}_bytesout_total") == 0
    assert value(leader, f"{REQUEST}_totaltimems_count", request="FetchFollower") != 0
    assert value(alone, "kafka_server_replicamanager_underreplicatedpartitions") == 1
    controller = "kafka_controller_kafkacontroller"
    assert value(alone, f"{controller}_fencedbrokercount") == 1
    assert of(alone, f"{controller}_brokerregistrationstate") == {
        frozenset({("broker", "1")}): 30,
        frozenset({("broker", "2")}): 10,
    }
    heard = f"{controller}_timesincelastheartbeatreceivedms"
    assert [len(of(scraped, heard)) for scraped in (leader, alone)] == [2, 1]
    assert value(leader, "kafka_server_raftmetrics_current_state", current_state="leader") == 1
    assert value(follower, "kafka_server_raftmetrics_current_state", current_state="observer") == 1
    assert value(follower, "kafka_controller_kafkacontroller_activecontrollercount") is None


async def test_the_room_on_a_disk_is_shown_and_is_none_once_the_disk_refuses_writes(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("orders")
        logs = home.broker.node.logs
        [log_dir] = logs.dirs.all
        before = await scrape(home.broker)
        await until(lambda: logs.spaces.of(log_dir))
        found = await scrape(home.broker)
        home.files.free_bytes = 0
        refused = await user.try_to_produce("orders", b"one")
        full = await scrape(home.broker)

    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    total, usable = home.files.space(log_dir.path)
    assert usable == 0
    for name, shown in (("bytes", [None, total, total]), ("usable_bytes", [None, total // 2, 0])):
        name = f"pykafka_broker_log_directory_{name}"
        of_scrapes = [value(one, name, logDirectory=log_dir.path) for one in (before, found, full)]
        assert of_scrapes == shown


async def test_clients_are_counted_by_the_software_they_name(home: Home) -> None:
    async with home.running() as user:
        await user.send(ApiVersionsRequest(client_software_name="robot", client_software_version="1.5"), 3)
        found = await scrape(home.broker)

    software = {"clientSoftwareName": "robot", "clientSoftwareVersion": "1.5"}
    connections = of(found, "kafka_server_socket_server_metrics_connections_software", **software)
    assert list(connections.values()) == [1]


async def test_dashboards_find_what_they_ask_for(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one")
        await user.commit("readers", "orders", 1)
        await scrape(home.broker)
        await home.pass_time(6_000)
        await user.create_topic("payments")
        found = {name for name, _ in await scrape(home.broker)}

    assert [name for name in ASKED_FOR if name not in found] == []


async def test_a_page_has_the_labels_that_are_declared(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one")
        found = await scrape(home.broker)

    declared = {family.name: set(family.labels.split()) for family in FAMILIES}
    wrong = {
        name for name, labels in found if labels and {label for label, _ in labels} != declared.get(name)
    }
    assert not wrong
    assert len(declared) == len(FAMILIES)


def of(samples: Samples, name: str, **labels: str) -> dict[frozenset[tuple[str, str]], float]:
    """The samples of a name that have these labels among theirs."""
    wanted = frozenset(labels.items())
    return {found: one for (its_name, found), one in samples.items() if its_name == name and wanted <= found}
