"""Apache Kafka's command-line tools, as they are, against the broker.

Each tool is a JVM of its own and starts slowly, so a check does as much as it can with one run. A check is a
function of a world; the lane runs all of them on one broker, or on several nodes, in this order.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from interop.checks import tried
from interop.clients.client import Client, Record
from interop.scenarios.data import NOON_MS
from interop.world import World, eventually
from pykafka_broker.log.disk.names import METADATA_TOPIC
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.apache.tools import run_tool
from pykafka_broker.testing.processes import PykafkaNode

TOOLS = "org.apache.kafka.tools"
GROUPS = "consumer.group.ConsumerGroupCommand"


def tool(world: World, name: str, *arguments: str, stdin: str = "", expect_failure: bool = False) -> str:
    main_class = name if name.startswith("kafka.") else f"{TOOLS}.{name}"
    return run_tool(
        main_class,
        "--bootstrap-server",
        world.broker.address,
        *arguments,
        stdin=stdin,
        expect_failure=expect_failure,
        version=world.tools_version,
    )


def topics_are_created_described_altered_and_deleted(world: World) -> None:
    topic = world.name("tools")
    tool(
        world,
        "TopicCommand",
        "--create",
        "--topic",
        topic,
        "--partitions",
        "2",
        "--config",
        "retention.ms=3600000",
    )
    described = tool(world, "TopicCommand", "--describe", "--topic", topic)
    assert re.search(
        rf"Topic: {topic}\s+TopicId: \S+\s+PartitionCount: 2\s+ReplicationFactor: {world.nodes}\s+Configs:",
        described,
    )
    assert "retention.ms=3600000" in described
    assert len(re.findall(r"Leader: \d+\s+Replicas: [\d,]+\s+Isr: [\d,]+", described)) == 2, described
    tool(world, "TopicCommand", "--alter", "--topic", topic, "--partitions", "4")
    tool(world, "TopicCommand", "--delete", "--topic", topic)
    assert topic not in tool(world, "TopicCommand", "--list").split()


def the_console_consumer_prints_what_the_console_producer_was_told(world: World) -> None:
    topic = world.name("console")
    lines = "h1:a,h2:b\tkey\tvalue\nh1:a\tNULL\tno key\nh1:c\tgone\tNULL\n"
    tool(
        world,
        "ConsoleProducer",
        *("--topic", topic, "--compression-codec", "lz4"),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        *("--reader-property", "null.marker=NULL"),
        stdin=lines,
    )
    printed = tool(
        world,
        "consumer.ConsoleConsumer",
        *("--topic", topic, "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000"),
        *(f"--formatter-property=print.{part}=true" for part in ("headers", "key", "timestamp")),
    )
    found = sorted(line.split("\t", 1)[1] for line in printed.splitlines() if line.startswith("CreateTime:"))
    assert found == sorted(["h1:a,h2:b\tkey\tvalue", "h1:a\tnull\tno key", "h1:c\tgone\tnull"]), printed


def offsets_are_shown_by_time_and_place(world: World) -> None:
    topic = filled(world, 7)
    for at, expected in (("latest", 7), ("earliest", 0), ("max-timestamp", 6), (str(NOON_MS + 2000), 2)):
        assert tool(world, "GetOffsetShell", "--topic", topic, "--time", at).split() == [
            f"{topic}:0:{expected}"
        ], at


def a_group_is_described_reset_and_deleted(world: World) -> None:
    topic, group = filled(world, 5), world.name("tools")
    tool(
        world,
        "consumer.ConsoleConsumer",
        *(
            "--topic",
            topic,
            "--group",
            group,
            "--from-beginning",
            "--max-messages",
            "5",
            "--timeout-ms",
            "20000",
        ),
    )
    assert group in tool(world, GROUPS, "--list").split()
    described = tool(world, GROUPS, "--describe", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+0\s+5\s+5\s+0", described), described
    tool(
        world, GROUPS, "--reset-offsets", "--to-offset", "2", "--topic", topic, "--group", group, "--execute"
    )
    assert client(world).committed(group, topic) == 2
    tool(world, GROUPS, "--delete", "--group", group)
    assert group not in client(world).groups()


def offsets_are_reset_in_every_form(world: World) -> None:
    """Each form first shows what it would do, then the offsets move from where the form before left them."""
    topic, group = filled(world, 10), world.name("resets")

    def reset(*how: str, where: tuple[str, ...] = ("--topic", topic)) -> str:
        return tool(world, GROUPS, "--reset-offsets", "--group", group, *where, *how)

    def lands(expected: int, *how: str, where: tuple[str, ...] = ("--topic", topic)) -> None:
        printed = reset(*how, "--execute", where=where)
        assert re.search(rf"{group}\s+{topic}\s+0\s+{expected}\b", printed), f"{how}: {printed}"
        assert client(world).committed(group, topic) == expected, how

    lands(4, "--to-offset", "4")
    planned = reset("--to-latest", "--dry-run")
    assert re.search(rf"{group}\s+{topic}\s+0\s+10\b", planned), planned
    assert client(world).committed(group, topic) == 4, "a dry run moves nothing"
    exported = reset("--to-current", "--export", "--dry-run")
    assert f"{topic},0,4" in exported, exported
    lands(10, "--to-latest", where=("--all-topics",))
    lands(7, "--shift-by", "-3")
    lands(10, "--shift-by", "100")
    lands(0, "--to-earliest")
    lands(
        3,
        "--to-datetime",
        datetime.fromtimestamp(NOON_MS / 1000 + 2.5, UTC).isoformat(timespec="milliseconds"),
    )
    lands(3, "--to-current")
    lands(0, "--by-duration", "P20000D")
    plan = world.broker.folder / "reset-plan.csv"
    plan.write_text(f"{topic},0,6\n")
    lands(6, "--from-file", str(plan), where=())
    lands(10, "--to-offset", "1000000", where=("--topic", f"{topic}:0"))
    printed = tool(
        world, GROUPS, "--reset-offsets", "--all-groups", "--topic", topic, "--to-earliest", "--dry-run"
    )
    assert re.search(rf"{group}\s+{topic}\s+0\s+0\b", printed), printed


def offsets_of_a_topic_are_deleted(world: World) -> None:
    kept, gone, group = filled(world, 2), filled(world, 2), world.name("deletes")
    tool(
        world,
        GROUPS,
        *("--reset-offsets", "--group", group, "--to-latest", "--execute"),
        *("--topic", kept, "--topic", gone),
    )
    printed = tool(world, GROUPS, "--delete-offsets", "--group", group, "--topic", gone)
    assert re.search(rf"{gone}\s+0\s+Successful", printed), printed
    assert client(world).committed(group, kept) == 2
    assert client(world).committed(group, gone) is None


def a_group_that_lives_is_shown_and_keeps_its_offsets(world: World) -> None:
    topic, group = filled(world, 3), world.name("lives")
    member = client(world).member(group, topic)
    try:
        while not member.poll(0.5):
            pass
        member.commit()
        state = tool(world, GROUPS, "--describe", "--group", group, "--state")
        assert re.search(rf"{group}\s+\S+\s+\(\d+\)\s+\S+\s+Stable\s+1\b", state), state
        members = tool(world, GROUPS, "--describe", "--group", group, "--members", "--verbose")
        assert re.search(rf"{group}\s+\S+\s+/127\.0\.0\.1\s+\S+\s+1\b", members), members
        assert group in tool(world, GROUPS, "--list", "--state", "stable")
        refused = tool(
            world, GROUPS, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"
        )
        assert "inactive" in refused, refused
        kept = tool(world, GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
        assert "subscribed" in kept, kept
        there = tool(world, GROUPS, "--delete", "--group", group)
        assert "not empty" in there, there
    finally:
        member.close()


def topic_and_broker_configs_are_changed(world: World) -> None:
    topic = filled(world, 1)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    tool(world, "kafka.admin.ConfigCommand", *of_topic, "--alter", "--add-config", "retention.ms=7200000")
    assert "retention.ms=7200000" in tool(world, "kafka.admin.ConfigCommand", *of_topic, "--describe")
    tool(world, "kafka.admin.ConfigCommand", *of_topic, "--alter", "--delete-config", "retention.ms")
    default = ("--entity-type", "brokers", "--entity-default")
    tool(world, "kafka.admin.ConfigCommand", *default, "--alter", "--add-config", "log.retention.ms=86400000")
    eventually(
        lambda: client(world).config(topic)["retention.ms"][0] == "86400000",
        "the topic follows the broker's default",
    )
    tool(world, "kafka.admin.ConfigCommand", *default, "--alter", "--delete-config", "log.retention.ms")


def throttles_of_replication_are_set_and_shown(world: World) -> None:
    """The rate of brokers, and the replicas of a topic that it holds for."""
    of_topic = ("--entity-type", "topics", "--entity-name", filled(world, 1))
    for of, suffix, value in (
        (("--entity-type", "brokers", "--entity-default"), "rate", "1048576"),
        (of_topic, "replicas", "0:1,1:101"),
        (of_topic, "replicas", "*"),
    ):
        keys = [f"{side}.replication.throttled.{suffix}" for side in ("leader", "follower")]
        changes = ",".join(f"{key}=[{value}]" for key in keys)
        tool(world, "kafka.admin.ConfigCommand", *of, "--alter", "--add-config", changes)
        described = tool(world, "kafka.admin.ConfigCommand", *of, "--describe")
        assert all(f"{key}={value} " in described for key in keys), described
        tool(world, "kafka.admin.ConfigCommand", *of, "--alter", "--delete-config", ",".join(keys))
        described = tool(world, "kafka.admin.ConfigCommand", *of, "--describe")
        assert "replication.throttled" not in described, described
    wrong = ("--alter", "--add-config", "leader.replication.throttled.replicas=everywhere")
    refused = tool(world, "kafka.admin.ConfigCommand", *of_topic, *wrong, expect_failure=True)
    assert "InvalidConfigurationException" in refused, refused


def records_are_deleted_up_to_an_offset(world: World) -> None:
    topic = filled(world, 5)
    wanted = world.broker.folder / "delete-records.json"
    wanted.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 3}]})
    )
    printed = tool(world, "DeleteRecordsCommand", "--offset-json-file", str(wanted))
    assert "low_watermark: 3" in printed, printed
    assert client(world).beginning(topic) == 3


def the_log_folders_are_described(world: World) -> None:
    topic = filled(world, 5)
    printed = tool(world, "LogDirsCommand", "--describe", "--topic-list", topic)
    described = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    partitions = [p for broker in described["brokers"] for d in broker["logDirs"] for p in d["partitions"]]
    found = [(p["partition"], p["size"] > 0, p["offsetLag"]) for p in partitions]
    assert found == [(f"{topic}-0", True, 0)] * world.nodes, printed


def the_cluster_and_its_api_versions_are_shown(world: World) -> None:
    identity = run_tool(f"{TOOLS}.ClusterTool", "cluster-id", "--bootstrap-server", world.broker.address)
    assert re.search(r"Cluster ID: \S{22}", identity), identity
    versions = tool(world, "BrokerApiVersionsCommand")
    for api in ("Produce(0): 0 to 13", "Fetch(1): 4 to 18", "Metadata(3): 0 to 13"):
        assert api in versions, f"{api} is not in {versions}"


def the_controller_is_asked_directly(world: World) -> None:
    assert isinstance(world.broker, (ApacheBroker, PykafkaNode))
    address = world.broker.controller_address

    def ask(name: str, *arguments: str) -> str:
        main_class = name if name.startswith("kafka.") else f"{TOOLS}.{name}"
        # The cluster tool wants what it is to do first.
        first = arguments[:1] if name == "ClusterTool" else ()
        rest = arguments[len(first) :]
        return run_tool(
            main_class, *first, "--bootstrap-controller", address, *rest, version=world.tools_version
        )

    assert re.search(r"Cluster ID: \S{22}", ask("ClusterTool", "cluster-id"))
    endpoints = ask("ClusterTool", "list-endpoints").splitlines()
    host, _, port = address.rpartition(":")
    assert [line.split() for line in endpoints if line] == [
        ["ID", "HOST", "PORT", "RACK", "ENDPOINT_TYPE"],
        ["1", host, port, "null", "controller"],
    ], endpoints
    features = ask("FeatureCommand", "describe")
    assert re.search(r"Feature: metadata.version .*FinalizedVersionLevel: 4.3-IV0", features), features
    default = ("--entity-type", "brokers", "--entity-default")
    ask("kafka.admin.ConfigCommand", *default, "--alter", "--add-config", "log.retention.ms=86400000")
    described = ask("kafka.admin.ConfigCommand", *default, "--describe")
    assert "log.retention.ms=86400000 sensitive=false" in described, described
    ask("kafka.admin.ConfigCommand", *default, "--alter", "--delete-config", "log.retention.ms")
    moving = ask("reassign.ReassignPartitionsCommand", "--list")
    assert moving == "No partition reassignments found.\n", moving


def partitions_elect_their_leaders(world: World) -> None:
    topic = world.topic(client(world), partitions=2)
    for election_type in ("preferred", "unclean"):
        elected = tool(
            world,
            "LeaderElectionCommand",
            *("--election-type", election_type, "--topic", topic, "--partition", "1"),
        )
        assert elected.split("\n") == [f"Valid replica already elected for partitions {topic}-1", ""], elected
    everything = ("--election-type", "preferred", "--all-topic-partitions")
    assert tool(world, "LeaderElectionCommand", *everything) == ""
    wanted = world.broker.folder / "elections.json"
    partitions = [{"topic": topic, "partition": partition} for partition in (0, 1, 7)]
    wanted.write_text(json.dumps({"partitions": partitions}))
    refused = tool(
        world,
        "LeaderElectionCommand",
        *("--election-type", "preferred", "--path-to-json-file", str(wanted)),
        expect_failure=True,
    )
    known = re.search(r"Valid replica already elected for partitions (.*)", refused)
    assert known and sorted(known[1].split(", ")) == [f"{topic}-0", f"{topic}-1"], refused
    assert f"Error completing leader election (PREFERRED) for partition: {topic}-7: " in refused, refused


def partitions_are_reassigned_to_the_only_node(world: World) -> None:
    topic = world.topic(client(world), partitions=2)
    node = json.loads(reassign(world, "--generate", topics=topic, brokers="1").splitlines()[-1])
    assert [partition["replicas"] for partition in node["partitions"]] == [[1], [1]], node
    executed = reassign(world, "--execute", plan=node)
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in executed, executed
    assert reassign(world, "--list").strip() == "No partition reassignments found."
    verified = reassign(world, "--verify", plan=node)
    for partition in (0, 1):
        assert f"Reassignment of partition {topic}-{partition} is completed." in verified, verified
    assert f"Clearing topic-level throttles on topic {topic}" in verified, verified
    cancelled = reassign(world, "--cancel", plan=node)
    assert "None of the specified partition reassignments are active." in cancelled, cancelled
    elsewhere = {**node, "partitions": [{**node["partitions"][0], "replicas": [9]}]}
    refused = reassign(world, "--execute", plan=elsewhere, expect_failure=True)
    assert "Error: Unknown broker id 9" in refused, refused


def reassign(
    world: World,
    action: str,
    *,
    plan: object = None,
    topics: str = "",
    brokers: str = "",
    expect_failure: bool = False,
) -> str:
    arguments = [action]
    if plan is not None:
        file = world.broker.folder / "reassignment.json"
        file.write_text(json.dumps(plan))
        arguments += ["--reassignment-json-file", str(file)]
    if topics:
        file = world.broker.folder / "topics.json"
        file.write_text(json.dumps({"version": 1, "topics": [{"topic": topics}]}))
        arguments += ["--topics-to-move-json-file", str(file), "--broker-list", brokers]
    command = "reassign.ReassignPartitionsCommand"
    return tool(world, command, *arguments, expect_failure=expect_failure)


def the_quorum_of_the_metadata_log_is_described(world: World) -> None:
    status = tool(world, "MetadataQuorumCommand", "describe", "--status")
    told = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    voters = json.loads(told["CurrentVoters"])
    assert [voter["id"] for voter in voters] == [int(told["LeaderId"])], status
    assert (int(told["MaxFollowerLag"]), told["CurrentObservers"].strip()) == (0, "[]"), status
    world.topic(client(world))
    replication = tool(world, "MetadataQuorumCommand", "describe", "--replication")
    columns = replication.splitlines()[1].split()
    assert (columns[0], columns[-1]) == (told["LeaderId"].strip(), "Leader"), replication
    assert int(columns[2]) > int(told["HighWatermark"]), f"{status}\n{replication}"


def the_levels_of_features_are_lowered_and_raised(world: World) -> None:
    def change(*arguments: str, expect_failure: bool = False) -> str:
        return tool(world, "FeatureCommand", *arguments, expect_failure=expect_failure).strip()

    feature = "transaction.version"
    assert (
        change("downgrade", "--feature", f"{feature}=1", "--dry-run") == f"{feature} can be downgraded to 1."
    )
    assert change("downgrade", "--feature", f"{feature}=1") == f"{feature} was downgraded to 1."
    described = change("describe")
    assert re.search(rf"{feature}\s+Supported.*FinalizedVersionLevel: 1\s", described), described
    assert change("upgrade", "--feature", f"{feature}=2") == f"{feature} was upgraded to 2."
    refused = change("disable", "--feature", "kraft.version", expect_failure=True)
    assert "Can't downgrade the version of this feature." in refused, refused


def brokers_are_listed_and_an_unknown_one_is_not_forgotten(world: World) -> None:
    address = ("--bootstrap-server", world.broker.address)
    listed = run_tool(f"{TOOLS}.ClusterTool", "list-endpoints", *address, "--include-fenced-brokers")
    (broker,) = (line.split() for line in listed.splitlines()[1:])
    assert (":".join(broker[1:3]), broker[4:]) == (world.broker.address, ["unfenced", "broker"]), listed
    refused = run_tool(f"{TOOLS}.ClusterTool", "unregister", *address, "--id", "77", expect_failure=True)
    assert "Broker ID 77 is not currently registered" in refused, refused


def the_folder_is_described_and_its_metadata_browsed(world: World) -> None:
    """Kafka's shell takes the lock of the folder, so it gets a copy."""
    topic = world.topic(client(world))
    with tempfile.TemporaryDirectory(prefix="metadata-") as folder:
        copied = Path(folder, f"{METADATA_TOPIC}-0")
        shutil.copytree(world.process.data_dir / copied.name, copied)
        # The snapshot that formatting leaves holds no metadata, for which the shell would wait.
        snapshots = [file for file in copied.glob("*.checkpoint") if int(file.stem.split("-")[0])]
        browsed = (*copied.glob("*.log"), *sorted(snapshots)[-1:])
        # Given a command as arguments, the shell may run it before the file is loaded; asked again and
        # again on stdin, it answers from what it has loaded meanwhile.
        asked = "ls /image/topics/byName\n" * 100 + "exit\n"
        listed = [
            run_tool("org.apache.kafka.shell.MetadataShell", "--snapshot", str(file), stdin=asked)
            for file in browsed
        ]
        assert any(topic in names for names in listed), listed
        properties = Path(folder, "server.properties")
        properties.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
            "controller.quorum.bootstrap.servers=127.0.0.1:1\nlisteners=PLAINTEXT://:0,CONTROLLER://:1\n"
            f"log.dirs={world.process.data_dir}\n"
        )
        described = run_tool("kafka.tools.StorageTool", "info", "-c", str(properties))
        assert re.search(r"Found metadata: .*cluster\.id=\S{22}, .*node\.id=1", described), described


def verifiable_clients_agree(world: World) -> None:
    topic = world.name("verifiable")
    sent = tool(world, "VerifiableProducer", "--topic", topic, "--max-messages", "500")
    assert json.loads(sent.splitlines()[-1])["acked"] == 500, sent[-500:]
    received = tool(
        world,
        "VerifiableConsumer",
        *("--topic", topic, "--group-id", world.name("verifiable"), "--max-messages", "500"),
    )
    events = [json.loads(line) for line in received.splitlines() if line.startswith("{")]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 500


def the_performance_tools_run(world: World) -> None:
    topic = world.topic(client(world), partitions=4)
    sent = tool(
        world,
        "ProducerPerformance",
        *("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
    )
    assert "20000 records sent" in sent, sent
    read = tool(world, "ConsumerPerformance", "--topic", topic, "--num-records", "20000", "--hide-header")
    assert int(read.strip().splitlines()[-1].split(",")[4]) >= 20000, read


#: The lane, in its order.
CHECKS: tuple[Callable[[World], None], ...] = (
    topics_are_created_described_altered_and_deleted,
    the_console_consumer_prints_what_the_console_producer_was_told,
    offsets_are_shown_by_time_and_place,
    a_group_is_described_reset_and_deleted,
    offsets_are_reset_in_every_form,
    offsets_of_a_topic_are_deleted,
    a_group_that_lives_is_shown_and_keeps_its_offsets,
    topic_and_broker_configs_are_changed,
    throttles_of_replication_are_set_and_shown,
    records_are_deleted_up_to_an_offset,
    the_log_folders_are_described,
    the_cluster_and_its_api_versions_are_shown,
    the_controller_is_asked_directly,
    partitions_elect_their_leaders,
    partitions_are_reassigned_to_the_only_node,
    the_quorum_of_the_metadata_log_is_described,
    the_levels_of_features_are_lowered_and_raised,
    brokers_are_listed_and_an_unknown_one_is_not_forgotten,
    the_folder_is_described_and_its_metadata_browsed,
    verifiable_clients_agree,
    the_performance_tools_run,
)

#: Tools that came with the broker in 3.9, take other options there, or tell of its versions of the APIs.
NOT_OF_3_9 = (
    the_console_consumer_prints_what_the_console_producer_was_told,
    topic_and_broker_configs_are_changed,
    throttles_of_replication_are_set_and_shown,
    the_cluster_and_its_api_versions_are_shown,
    the_controller_is_asked_directly,
    the_folder_is_described_and_its_metadata_browsed,
    the_performance_tools_run,
)

#: About the only node and its folder: of several nodes `cluster_tools/` asks the same, but for the folder.
OF_ONE_NODE = (
    the_controller_is_asked_directly,
    partitions_are_reassigned_to_the_only_node,
    the_quorum_of_the_metadata_log_is_described,
    brokers_are_listed_and_an_unknown_one_is_not_forgotten,
    the_folder_is_described_and_its_metadata_browsed,
)


def client(world: World) -> Client:
    """Any client serves to prepare a check and to look at its result."""
    return next(iter(world.clients.values()))


def filled(world: World, count: int) -> str:
    """A topic with a record a second."""
    topic = world.topic(client(world))
    client(world).produce(
        topic, [Record(str(n).encode(), timestamp_ms=NOON_MS + n * 1000) for n in range(count)]
    )
    return topic


def run(world: World, report: Callable[[str], None]) -> list[str]:
    failures: list[str] = []
    for check in CHECKS:
        is_too_new = world.tools_version.startswith("3.9") and check in NOT_OF_3_9
        if is_too_new or (world.nodes > 1 and check in OF_ONE_NODE):
            continue
        title = f"{check.__name__.replace('_', ' ')} ({world.tools_version})"
        failures += tried(title, partial(check, world), report)
    return failures
