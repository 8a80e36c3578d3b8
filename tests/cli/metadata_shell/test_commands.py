"""The commands of `metadata shell` over a tree: names, paths, patterns, secrets; and the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykafka_broker.cli.metadata_shell.commands import Outcome, Session, completions, execute, in_columns
from pykafka_broker.cli.metadata_shell.tree import View, root
from tests.cli.conftest import run_command
from tests.cli.metadata_shell.images import IMAGE, TIMESTAMP_MS, snapshot

SESSION = Session(root(View(IMAGE, TIMESTAMP_MS)))
TOPIC = "/image/topics/byName/orders"


def lines(command: str) -> tuple[str, ...]:
    outcome = execute(SESSION, command)
    assert outcome.problems == ()
    return outcome.lines


def test_the_directories_are_those_of_apache_kafkas_shell() -> None:
    assert lines("ls /") == ("image", "local")
    assert lines("ls /image") == (
        *("acls", "clientQuotas", "cluster", "configs", "delegationToken"),
        *("features", "producerIds", "provenance", "scram", "topics"),
    )
    assert lines("ls /image/configs") == ("BROKER", "BROKER:2", "TOPIC:orders")


def test_files_have_the_texts_of_apache_kafkas_shell() -> None:
    assert lines(f"cat {TOPIC}/0") == (
        "PartitionRegistration(replicas=[2, 3], "
        "directories=[AAAAAAAAAAAAAAAAAAAACA, AAAAAAAAAAAAAAAAAAAAAA], isr=[2], removingReplicas=[], "
        "addingReplicas=[3], elr=[3], lastKnownElr=[], leader=2, leaderRecoveryState=RECOVERED, "
        "leaderEpoch=4, partitionEpoch=6)",
    )
    assert lines("cat /image/acls/byId/*") == (
        "StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, principal=User:alice, "
        "host=*, operation=READ, permissionType=ALLOW]",
    )
    assert lines("cat /image/provenance") == ("offset 13, epoch 3, time 2026-01-02T03:04:05Z[UTC]",)


def test_a_secret_is_nowhere_in_the_tree() -> None:
    everything = "\n".join(lines("tree /"))

    for secret in ("hunter2", b"salt".hex(), b"stored".hex(), "User:bob"):
        assert secret not in everything
    assert lines("cat '/image/configs/BROKER:2/ssl.keystore.password'") == ("[redacted]",)
    assert lines("cat /image/configs/TOPIC:orders/retention.ms") == ("5000",)


def test_paths_may_be_relative_and_have_patterns() -> None:
    there = SESSION._replace(working_directory=TOPIC)

    assert execute(there, "cat name ../../byId/*/id").lines == ("orders", "AAECAwQFBgcICQoLDA0ODw")
    assert execute(there, "cd ../..") == Outcome("/image/topics")
    assert lines("find /image/cluster/{brokers,controllers}") == (
        *("/image/cluster/brokers", "/image/cluster/brokers/2"),
        *("/image/cluster/controllers", "/image/cluster/controllers/1"),
    )


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("cat /image", "cat: /image: Is a directory"),
        ("ls nowhere", "ls: nowhere: no such file or directory."),
        ("cd /local/version", "cd: /local/version: not a directory."),
        ("cat", "usage: cat PATH..."),
        ("tre /", "tre: no such command. Did you mean 'tree'? See help."),
        ("cat 'x", "No closing quotation."),
    ],
)
def test_what_cannot_be_done_is_told(command: str, problem: str) -> None:
    assert execute(SESSION, command) == Outcome("/", problems=(problem,))


def test_words_are_completed() -> None:
    assert completions(SESSION, "", "c") == ["cat ", "cd "]
    assert completions(SESSION, "ls ", "/image/topics/by") == ["/image/topics/byId/", "/image/topics/byName/"]
    assert completions(SESSION, "cat ", "local/v") == ["local/version "]


def test_lists_go_in_columns_where_there_is_a_terminal() -> None:
    assert in_columns(["a", "bb", "c"], None) == ["a", "bb", "c"]
    assert in_columns(["a", "bb", "c"], 6) == ["a   c", "bb"]
    assert in_columns(["a", "bb", "c"], 80) == ["a  bb  c"]


def test_a_script_on_standard_input_runs_to_its_end_and_fails_for_its_problems(tmp_path: Path) -> None:
    file = tmp_path / "00000000000000000014-0000000003.checkpoint"
    file.write_bytes(snapshot())

    ran = run_command(
        *("metadata", "shell", "-s", str(file)), stdin=b"cd image/topics\ncat nothing\nls\nexit\npwd\n"
    )
    assert ran == (1, "byId\nbyName\n", "cat: nothing: No such file or directory.\n")
    as_json = run_command("metadata", "shell", "-s", str(file), "--json", "ls", "/local")
    assert json.loads(as_json.out) == {
        "command": "ls /local",
        "lines": ["commitId", "version"],
        "problems": [],
    }


def test_a_torn_snapshot_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "00000000000000000014-0000000003.checkpoint"
    file.write_bytes(snapshot()[:-10])

    ran = run_command("metadata", "shell", "-s", str(file), "ls")
    assert (ran.status, ran.out) == (1, "")
    assert "no footer" in ran.err


def test_a_folder_without_metadata_is_refused_and_where_it_is_told(tmp_path: Path) -> None:
    """Before, node.log of a local cluster was taken for a log."""
    (tmp_path / "node.log").write_text("[2026-11-25 17:17:50,344] INFO Starting Kafka server\n")
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "00000000000000000000.log").touch()

    def refused(folder: Path) -> str:
        result = run_command("metadata", "shell", "--folder", str(folder), "ls")
        assert (result.status, result.out) == (1, "")
        return result.err

    assert refused(tmp_path) == f"Error: {tmp_path} has no metadata log: no __cluster_metadata-0 is in it\n"
    assert "orders-0 has no metadata log" in refused(tmp_path / "orders-0")
    (tmp_path / "data" / "__cluster_metadata-0").mkdir(parents=True)
    assert refused(tmp_path) == f"Error: {tmp_path} has no metadata log; {tmp_path}/data has one\n"
