"""`spark doctor --no-session`: each fault is made, and said with its remedy."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.spark.java import VECTOR_MODULE
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import Run, RunningBroker, run_command
from tests.cli.test_main import unused_address
from tests.support.checkpoints import make_checkpoint

VERSION = metadata.version("pyspark")


def examined(*arguments: str) -> list[dict[str, Any]]:
    """What is said with `--json`."""
    result = run_command("spark", "doctor", *arguments, "--json")
    found = [json.loads(line) for line in result.out.splitlines()]
    assert result.status == any(finding["level"] == "problem" for finding in found), result.err
    return found


def problems(*arguments: str) -> list[tuple[str, str, str]]:
    """Check, message and remedy of each problem, found without a session."""
    found = examined("--no-session", *arguments)
    return [(f["check"], f["message"], f["remedy"]) for f in found if f["level"] == "problem"]


def test_where_nothing_is_wrong_every_check_says_so(run: Run, broker: str) -> None:
    run("produce", "fine", "a", "b")
    found = examined("--no-session", "-b", broker, "--topic", "fine")
    assert [(f["level"], f["check"]) for f in found] == [
        ("ok", check) for check in ("java", "jars", "connection", "brokers", "topics")
    ]
    assert found[-1]["message"] == "Topic 'fine' has 1 partition and 2 offsets to read."


def test_no_java_and_a_java_that_is_too_old_are_problems(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    [(check, message, remedy)] = problems("-b", broker)
    assert check == "java"
    assert message.startswith(f"{tmp_path}/bin/java does not start: ")
    assert "apt-get install openjdk-17-jre-headless" in remedy

    fake_java(tmp_path, "11.0.2")
    [(check, message, remedy)] = problems("-b", broker)
    assert (check, message) == (
        "java",
        f"{tmp_path}/bin/java is Java 11; Spark 4.0 needs 17 or newer, and ends with "
        "UnsupportedClassVersionError.",
    )


def fake_java(home: Path, version: str) -> None:
    """A Java that says that it is of this version, and ends badly when it is to run a program."""
    java = home / "bin" / "java"
    java.parent.mkdir(exist_ok=True)
    java.write_text(
        "#!/bin/sh\ncase $1 in\n"
        f"-version) echo 'openjdk version \"{version}\"' >&2;;\n"
        f"--list-modules) echo {VECTOR_MODULE}@17;;\n"
        "*) echo 'Error: Could not reserve enough space' >&2; exit 1;;\nesac\n"
    )
    java.chmod(0o755)


# PySpark leaves what it wrote to a JVM that has ended to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_session_that_does_not_start_is_a_problem_with_what_its_jvm_says(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    last = examined("-b", broker)[-1]
    assert (last["level"], last["check"]) == ("problem", "session")
    assert last["message"] == "No session starts: Error: Could not reserve enough space"


def test_another_spark_by_spark_home_and_jars_that_do_not_fit_are_problems(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "spark-sql-kafka-0-10_2.13-3.5.1.jar").touch()
    found = problems("-b", broker, "--jars", str(own))
    assert [check for check, _, _ in found] == ["jars"] * 4
    assert found[0][1] == (
        f"The connector is of Spark 3.5.1, and Spark is {VERSION}: it calls what this Spark does not have."
    )

    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    [(check, message, remedy)] = problems("-b", broker)
    assert check == "jars"
    assert message.startswith(f"pyspark is {VERSION}, and the Spark in {tmp_path} is 3.5.1: ")
    assert "pip install pyspark==3.5.1" in remedy

    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").unlink()
    [(check, message, _)] = problems("-b", broker)
    assert (check, message.startswith(f"{tmp_path}/jars (SPARK_HOME) has no jars of Spark")) == ("jars", True)


def test_no_broker_at_the_address_is_a_problem() -> None:
    address = unused_address()
    [(check, message, _)] = problems("-b", address)
    assert (check, message) == ("connection", f"No process listens at {address}.")


def test_an_advertised_address_that_leads_nowhere_is_a_problem(tmp_path: Path) -> None:
    nowhere, port = unused_address(), free_port()
    with RunningBroker(tmp_path, port, [f"advertised.listeners=PLAINTEXT://{nowhere}"]):
        [(check, message, remedy)] = problems("-b", f"127.0.0.1:{port}")
    assert check == "brokers"
    assert f"advertises {nowhere}, where no process listens" in message
    assert f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}" in remedy


def test_a_topic_that_does_not_exist_is_named_with_one_that_may_be_meant(run: Run, broker: str) -> None:
    run("topics", "create", "orders")
    found = [f for f in examined("--no-session", "-b", broker, "--topic", "order") if f["level"] != "ok"]
    assert [(f["level"], f["check"]) for f in found] == [("warning", "topics")]
    assert "Topic 'order' does not exist." in found[0]["message"]
    assert "Did you mean 'orders'?" in found[0]["remedy"]


def test_offsets_to_begin_with_that_are_not_there_are_problems(run: Run, broker: str) -> None:
    run("topics", "create", "starts", "--partitions", "2")
    run("produce", "starts", "--partition", "0", "a", "b")

    def starting(offsets: str) -> list[str]:
        option = f"startingOffsets={offsets}"
        return [m for _, m, _ in problems("-b", broker, "--topic", "starts", "--option", option)]

    assert starting("earliest") == starting('{"starts":{"0":2,"1":-2}}') == []
    assert starting('{"starts":{"0":3,"1":0}}') == [
        "startingOffsets begins at offset 3 of starts-0, which holds 0 to 2."
    ]
    assert starting('{"starts":{"0":0}}') == [
        "startingOffsets lacks partitions of 'starts' (1); Spark wants all of them."
    ]
    assert starting("newest") == [
        "startingOffsets is neither earliest nor latest nor JSON of topics and partitions: newest"
    ]


def test_a_checkpoint_that_the_topic_has_left_behind_is_a_problem(
    run: Run, broker: str, tmp_path: Path
) -> None:
    run("produce", "left", "a", "b")
    folder = make_checkpoint(tmp_path / "c", [{("left", 0): 2}])
    assert problems("-b", broker, "--checkpoint", str(folder)) == []
    folder = make_checkpoint(tmp_path / "d", [{("left", 0): 20}])
    [(check, message, remedy)] = problems("-b", broker, "--checkpoint", str(folder))
    assert check == "checkpoint"
    assert message.startswith("left-0: the checkpoint is at offset 20, and the topic holds 0 to 2: ")
    command = f"pykafka-broker spark checkpoint repair {folder} -b {broker}"
    assert remedy == f"See how it can go on:\n  {command}"


def test_a_checkpoint_of_another_topic_is_told_apart(run: Run, broker: str, tmp_path: Path) -> None:
    run("produce", "read", "a", "b")
    run("produce", "other", "a")
    folder = make_checkpoint(tmp_path / "c", [{("read", 0): 2}])
    chosen = ("-b", broker, "--no-session", "--checkpoint", str(folder))

    def said(*topics: str) -> list[str]:
        names = [flag for topic in topics for flag in ("--topic", topic)]
        return [f["message"] for f in examined(*chosen, *names) if "Its query" in f["message"]]

    assert said("read") == []
    assert said("read", "other") == ["Its query reads read, and not other."]


def test_a_listener_with_security_is_left_to_spark() -> None:
    found = examined("--no-session", "--option", "kafka.security.protocol=SASL_SSL")
    assert [(f["level"], f["check"]) for f in found] == [
        ("ok", "java"),
        ("ok", "jars"),
        ("skipped", "connection"),
    ]
