"""`quorum`: what the leader of the metadata log says, in kafka-metadata-quorum.sh's form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pykafka_broker.cli.quorum import _quorum, _replication, _status
from pykafka_broker.protocol.messages.describe_quorum import (
    DescribeQuorumResponsePartitionData,
    Listener,
    Node,
    ReplicaState,
)
from tests.cli.conftest import Run, formatted_controller


def test_a_quorum_of_one_is_described(run: Run) -> None:
    lines = run("quorum", "describe").out.splitlines()

    assert [line.partition(":")[0] for line in lines] == [
        "ClusterId",
        "LeaderId",
        "LeaderEpoch",
        "HighWatermark",
        "MaxFollowerLag",
        "MaxFollowerLagTimeMs",
        "CurrentVoters",
        "CurrentObservers",
    ]
    assert lines[1] == "LeaderId:               1"
    # Nothing listens for controllers: none is named.
    assert re.fullmatch(r'CurrentVoters:          \[\{"id": 1, "directoryId": "\S{22}"\}\]', lines[6])
    assert lines[7] == "CurrentObservers:       []"


def test_the_only_node_has_all_of_the_log(run: Run) -> None:
    titles, row = run("quorum", "describe", "--replication").out.splitlines()

    assert [title.strip() for title in titles.split("\t")] == [
        "NodeId",
        "DirectoryId",
        "LogEndOffset",
        "Lag",
        "LastFetchTimestamp",
        "LastCaughtUpTimestamp",
        "Status",
        "",
    ]
    cells = [cell.strip() for cell in row.split("\t")]
    assert (cells[0], cells[3], cells[6]) == ("1", "0", "Leader")


def replica(node_id: int, end_offset: int, caught_up: int = -1) -> ReplicaState:
    return ReplicaState(
        replica_id=node_id,
        log_end_offset=end_offset,
        last_fetch_timestamp=caught_up,
        last_caught_up_timestamp=caught_up,
    )


def test_followers_and_observers_lag_behind_the_leader() -> None:
    described = DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_code=0,
        leader_id=2,
        leader_epoch=3,
        high_watermark=9,
        current_voters=[replica(1, 7, 4_000), replica(2, 10, 5_000)],
        observers=[replica(5, 1)],
    )
    node = Node(node_id=2, listeners=[Listener(name="C", host="h", port=9)])

    found = _quorum("cluster", described, [node])

    assert (found.max_follower_lag, found.max_follower_lag_time_ms) == (3, 1_000)
    zero = "A" * 22
    assert list(_status(found))[6:] == [
        f'CurrentVoters:          [{{"id": 1, "directoryId": "{zero}"}}, '
        f'{{"id": 2, "directoryId": "{zero}", "endpoints": ["C://h:9"]}}]',
        f'CurrentObservers:       [{{"id": 5, "directoryId": "{zero}"}}]',
    ]
    assert [line.split() for line in _replication(found.replicas)][1:] == [
        ["2", zero, "10", "0", "5000", "5000", "Leader"],
        ["1", zero, "7", "3", "4000", "4000", "Follower"],
        ["5", zero, "1", "9", "-1", "-1", "Observer"],
    ]


def test_of_voters_with_the_same_end_the_last_one_is_silent_longest() -> None:
    described = DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_code=0,
        leader_id=1,
        leader_epoch=3,
        high_watermark=10,
        current_voters=[replica(1, 10, 9_000), replica(2, 10, 8_900), replica(3, 10, 2_000)],
        observers=[],
    )
    found = _quorum("cluster", described, [])
    assert (found.max_follower_lag, found.max_follower_lag_time_ms) == (0, 7_000)


@pytest.fixture
def controller(tmp_path: Path) -> Path:
    """The configuration of a formatted controller."""
    return formatted_controller(tmp_path)


def directory_of(controller: Path) -> str:
    meta = (controller.parent / "data" / "meta.properties").read_text()
    [found] = re.findall(r"^directory\.id=(\S+)$", meta, re.MULTILINE)
    return str(found)


def test_a_controller_is_named_by_its_own_files_before_it_is_added(run: Run, controller: Path) -> None:
    tried = run("quorum", "add-controller", "--config", str(controller), "--dry-run")

    assert tried.out == (
        f"DRY RUN of adding controller 7 with directory id {directory_of(controller)} and endpoints: "
        "CONTROLLER://127.0.0.1:1\n"
    )


def test_a_controller_that_is_not_reached_is_not_added(run: Run, controller: Path) -> None:
    refused = run("quorum", "add-controller", "--config", str(controller))

    assert (refused.status, refused.out) == (1, "")
    assert "Aborted add voter operation for since API_VERSIONS returned an error" in refused.err


def test_a_configuration_of_no_formatted_controller_is_told(run: Run, controller: Path) -> None:
    (controller.parent / "data" / "meta.properties").unlink()
    unformatted = run("quorum", "add-controller", "--config", str(controller))
    assert (unformatted.status, "Has the directory been formatted?" in unformatted.err) == (1, True)


def test_a_controller_that_does_not_vote_is_not_removed(run: Run) -> None:
    directory = "AAECAwQFBgcICQoLDA0ODw"
    removing = ("quorum", "remove-controller", "--id", "9", "--directory-id", directory)

    tried = run(*removing, "--dry-run")
    refused = run(*removing)

    assert tried.out == f"DRY RUN of removing KRaft controller 9 with directory id {directory}\n"
    assert (refused.status, refused.out) == (1, "")
    assert f"Cannot remove voter ReplicaKey(id=9, directoryId={directory}) from the set" in refused.err
    assert run("quorum", "remove-controller", "--id", "9", "--directory-id", "short").status == 2
