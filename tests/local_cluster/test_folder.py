"""The folder of a local cluster: who is formatted, as what, and when no more."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pykafka_broker.local_cluster.folder import ClusterFolder
from pykafka_broker.local_cluster.free_ports import FIRST_OUTGOING_PORT, FIRST_PORT
from pykafka_broker.local_cluster.layout import AUTO_JOIN, LISTENERS, Layout
from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.log.disk.directories import LogDirError

CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def made(path: Path, layout: Layout) -> ClusterFolder:
    folder = ClusterFolder(path)
    folder.create(layout, 0, {})
    return folder


def data(folder: ClusterFolder, node_id: int) -> Path:
    return folder.node(node_id) / "data"


def lose(folder: ClusterFolder, *node_ids: int) -> None:
    for node_id in node_ids:
        shutil.rmtree(data(folder, node_id))


def directory_id(folder: ClusterFolder, node_id: int) -> bytes | None:
    return decode_meta_properties((data(folder, node_id) / "meta.properties").read_bytes()).directory_id


def first_voters(folder: ClusterFolder) -> list[int]:
    """The nodes whose directories name the first voters."""
    return [node_id for node_id in folder.node_ids() if (data(folder, node_id) / CHECKPOINT).exists()]


def test_a_controller_that_lost_its_directory_is_no_first_voter_again(tmp_path: Path) -> None:
    folder = made(tmp_path, Layout(controllers=3, brokers=1))
    assert folder.format() == []
    assert first_voters(folder) == [1, 2, 3]
    before = directory_id(folder, 2)
    lose(folder, 2, 4)
    assert folder.format([1]) == []
    assert folder.format() == [2, 4]
    assert first_voters(folder) == [1, 3]
    assert directory_id(folder, 2) != before
    assert folder.format() == []


def test_a_first_start_that_was_cut_short_goes_on_with_the_first_voters(tmp_path: Path) -> None:
    folder = made(tmp_path, Layout(combined=3))
    plan = (tmp_path / "cluster.properties").read_bytes()
    folder.format()
    before = directory_id(folder, 2)
    lose(folder, 2, 3)
    (tmp_path / "cluster.properties").write_bytes(plan)
    assert folder.format() == []
    assert first_voters(folder) == [1, 2, 3]
    assert directory_id(folder, 2) == before


def test_a_folder_of_before_is_known_by_a_metadata_log_and_its_nodes_learn_to_join(tmp_path: Path) -> None:
    folder = made(tmp_path, Layout(combined=3))
    plan = (tmp_path / "cluster.properties").read_bytes()
    folder.format()
    (tmp_path / "cluster.properties").write_bytes(plan)
    for node_id in folder.node_ids():
        file = folder.properties_file(node_id)
        file.write_text(file.read_text().replace(f"{AUTO_JOIN}=true\n", ""))
        (data(folder, node_id) / "__cluster_metadata-0" / "00000000000000000000.log").touch()
    lose(folder, 2)
    assert folder.format() == [2]
    assert first_voters(folder) == [1, 3]
    assert [folder.config(node_id).values[AUTO_JOIN] for node_id in folder.node_ids()] == [False, True, False]


def test_without_a_majority_of_controllers_nothing_is_formatted(tmp_path: Path) -> None:
    folder = made(tmp_path, Layout(controllers=3, brokers=1))
    folder.format()
    lose(folder, 1, 3)
    with pytest.raises(
        LogDirError, match="The directories of nodes 1, 3 are empty, and the metadata is lost"
    ):
        folder.format()
    assert not data(folder, 1).exists()
    lose(folder, 2)
    with pytest.raises(LogDirError, match="The directories of nodes 1, 2, 3 are empty"):
        folder.format()


def test_a_cluster_without_any_directory_begins_anew(tmp_path: Path) -> None:
    folder = made(tmp_path, Layout(combined=1))
    folder.format()
    lose(folder, 1)
    assert folder.format() == []
    assert first_voters(folder) == [1]


def test_the_ports_of_a_new_cluster_are_none_that_the_system_gives_to_others(tmp_path: Path) -> None:
    folder = made(tmp_path, Layout(controllers=3, brokers=3))
    ports = [port for node_id in folder.node_ids() for port in folder.ports(node_id)]
    assert len(set(ports)) == 6
    assert FIRST_PORT <= min(ports) <= max(ports) < FIRST_OUTGOING_PORT


def test_a_node_more_is_as_the_last_one_with_its_roles_and_no_first_voter(tmp_path: Path) -> None:
    folder = made(tmp_path, Layout(controllers=1, brokers=1))
    assert folder.add_node() == 3
    assert folder.add_node(["controller"]) == 4
    assert folder.layout() == Layout(controllers=2, brokers=2)
    assert first_voters(folder) == [1]
    assert [folder.config(node_id).node_id for node_id in folder.node_ids()] == [1, 2, 3, 4]
    ports = [port for node_id in folder.node_ids() for port in folder.ports(node_id)]
    assert len(set(ports)) == 4


def test_a_node_more_that_was_interrupted_does_not_block_the_next(tmp_path: Path) -> None:
    folder = made(tmp_path, Layout(combined=1))
    folder.node(2).mkdir()
    assert folder.add_node() == 2
    assert folder.node_ids() == [1, 2]


def test_a_node_more_may_have_roles_that_no_other_has(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    folder.create(Layout(combined=1), 0, {"num.partitions": "4"})
    assert folder.add_node(["broker"]) == 2
    assert folder.add_node(["controller"]) == 3
    assert folder.add_node(["controller", "broker"]) == 4
    assert folder.add_node() == 5
    roles = {node_id: folder.roles(node_id) for node_id in folder.node_ids()}
    both = ["broker", "controller"]
    assert roles == {1: both, 2: ["broker"], 3: ["controller"], 4: both, 5: both}
    assert folder.layout().described() == "3 nodes and 1 controller and 1 broker"
    ports = [port for node_id in folder.node_ids() for port in folder.ports(node_id)]
    assert len(set(ports)) == 8
    configs = [folder.config(node_id) for node_id in folder.node_ids()]
    names = [[listener.name for listener in config.listeners] for config in configs]
    assert names == [[*LISTENERS], ["PLAINTEXT"], ["CONTROLLER"], [*LISTENERS], [*LISTENERS]]
    assert [config.values[AUTO_JOIN] for config in configs] == [True, False, True, True, True]
    assert {config.values["num.partitions"] for config in configs} == {4}


def test_controllers_and_brokers_apart_may_get_a_node_that_is_both(tmp_path: Path) -> None:
    folder = made(tmp_path, Layout(controllers=1, brokers=1))
    assert folder.add_node(["broker", "controller"]) == 3
    assert [listener.name for listener in folder.config(3).listeners] == [*LISTENERS]
    assert folder.address(3) == f"127.0.0.1:{folder.ports(3)[0]}"
    assert folder.config(3).values[AUTO_JOIN]
