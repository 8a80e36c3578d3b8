"""`topics`: creation, description in kafka-topics.sh's form, more partitions, deletion."""

from __future__ import annotations

import re

from tests.cli.conftest import Run


def test_a_created_topic_is_listed_and_described(run: Run) -> None:
    assert run("topics", "create", "clicks", "-p", "2", "--config", "retention.ms=5000").out == (
        "Created topic clicks.\n"
    )
    assert "clicks" in run("topics", "list").out.splitlines()
    head, *partitions = run("topics", "describe", "clicks").out.splitlines()
    assert re.fullmatch(
        r"Topic: clicks\tTopicId: [\w-]{22}\tPartitionCount: 2\tReplicationFactor: 1\t"
        r"Configs: (min\.insync\.replicas=1,retention\.ms=5000|retention\.ms=5000,min\.insync\.replicas=1)",
        head,
    )
    assert partitions == [
        "\tTopic: clicks\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: ",
        "\tTopic: clicks\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: ",
    ]


def test_a_topic_cannot_be_created_twice_unless_that_is_fine(run: Run) -> None:
    run("topics", "create", "twice")
    assert run("topics", "create", "twice") == (1, "", "Error: Topic 'twice' already exists.\n")
    assert run("topics", "create", "twice", "--if-not-exists") == (0, "", "")


def test_a_name_that_metrics_would_confuse_is_warned_about(run: Run) -> None:
    assert run("topics", "create", "a.b").out.startswith("WARNING: Due to limitations in metric names")


def test_a_bad_config_is_refused_in_the_brokers_words(run: Run) -> None:
    result = run("topics", "create", "bad", "--config", "retention.ms=soon")
    assert result.status == 1
    assert (
        result.err == "Error: Invalid value soon for configuration retention.ms: Not a number of type LONG\n"
    )
    result = run("topics", "create", "bad", "--config", "retention")
    assert result.status == 2
    assert "'retention' is not KEY=VALUE" in result.err


def test_a_topic_gets_more_partitions_but_never_fewer(run: Run) -> None:
    run("topics", "create", "growing")
    assert run("topics", "alter", "growing", "-p", "3").out == "Topic growing has 3 partitions.\n"
    assert "PartitionCount: 3" in run("topics", "describe", "growing").out
    assert run("topics", "alter", "growing", "-p", "2").status == 1


def test_a_deleted_topic_is_gone(run: Run) -> None:
    run("topics", "create", "brief")
    assert run("topics", "delete", "brief").out == "Deleted topic brief.\n"
    assert "brief" not in run("topics", "list").out.splitlines()
    assert run("topics", "delete", "brief") == (1, "", "Error: Topic 'brief' does not exist.\n")
    assert run("topics", "delete", "brief", "--if-exists").status == 0


def test_topics_that_are_created_or_deleted_are_shown_before_the_error_of_another(run: Run) -> None:
    run("topics", "create", "there")
    exists = "Error: Topic 'there' already exists.\n"
    assert run("topics", "create", "there", "fresh") == (1, "Created topic fresh.\n", exists)
    absent = "Error: Topic 'absent' does not exist.\n"
    assert run("topics", "delete", "absent", "fresh") == (1, "Deleted topic fresh.\n", absent)


def test_describing_what_does_not_exist_says_so(run: Run) -> None:
    assert run("topics", "describe", "nothing") == (1, "", "Error: Topic 'nothing' does not exist.\n")


def test_selections_leave_out_what_is_healthy(run: Run) -> None:
    run("topics", "create", "healthy")
    assert run("topics", "describe", "healthy", "--under-replicated-partitions").out == ""
    assert run("topics", "describe", "healthy", "--unavailable-partitions").out == ""


def test_topics_with_overrides_are_shown_without_partitions(run: Run) -> None:
    run("topics", "create", "overriding", "--config", "segment.bytes=2000000")
    out = run("topics", "describe", "overriding", "--topics-with-overrides").out
    assert "segment.bytes=2000000" in out
    assert "Partition: 0" not in out
