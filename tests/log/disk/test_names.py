"""File and folder names, as Apache Kafka writes them."""

from __future__ import annotations

import pytest

from pykafka_broker.log.disk.names import (
    FolderName,
    offset_file,
    parse_offset_file,
    parse_partition_folder,
    set_aside_folder,
)


def test_files_are_named_by_offset_with_twenty_digits() -> None:
    assert offset_file(42, ".log") == "00000000000000000042.log"
    assert parse_offset_file("00000000000000000042.timeindex") == (42, ".timeindex")
    for name in ("42.log", "leader-epoch-checkpoint", "00000000000000000042", "x.log"):
        assert parse_offset_file(name) is None


@pytest.mark.parametrize(
    "name, folder",
    [
        ("orders-3", FolderName("orders", 3, "")),
        ("a-b-0", FolderName("a-b", 0, "")),
        ("__consumer_offsets-49", FolderName("__consumer_offsets", 49, "")),
        ("orders-3.0123456789abcdef0123456789abcdef-delete", FolderName("orders", 3, "delete")),
        ("orders-3.0123456789abcdef0123456789abcdef-future", FolderName("orders", 3, "future")),
        ("a.b-3.0123456789abcdef0123456789abcdef-stray", FolderName("a.b", 3, "stray")),
        ("lost+found", None),
        ("orders", None),
        ("-1", None),
    ],
)
def test_folders_tell_topic_partition_and_state(name: str, folder: FolderName | None) -> None:
    assert parse_partition_folder(name) == folder


def test_a_set_aside_folder_fits_a_file_system_however_long_the_topic_is() -> None:
    name = set_aside_folder("t" * 249, 12, "0123456789abcdef0123456789abcdef", "delete")
    assert len(name) == 255
    folder = parse_partition_folder(name)
    assert folder is not None and (folder.partition, folder.state) == (12, "delete")
