"""Which directory a new log gets: the one that was asked for, else the one with the fewest logs."""

from __future__ import annotations

from collections import Counter

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.directories import LogDirs
from pykafka_broker.log.manager import placement as placements
from pykafka_broker.log.manager.log_folders import WantedLog
from pykafka_broker.log.manager.placement import Placement
from pykafka_broker.log.manager.registry import LogRegistry
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.memory_files import MemoryFiles

ORDERS = WantedLog("orders", 0, bytes(range(16)), LogConfig())


def placement(*paths: str) -> tuple[Placement, LogDirs]:
    dirs = LogDirs(MemoryFiles(), list(paths))
    for number, log_dir in enumerate(dirs.all):
        log_dir.directory_id = (1000 + number).to_bytes(16, "big")
    return Placement(dirs, LogRegistry()), dirs


def test_a_new_log_goes_where_the_fewest_are() -> None:
    place, dirs = placement("/a", "/b", "/c")

    assert place.dir_for(ORDERS, Counter({"/a": 2, "/b": 1, "/c": 3})) is dirs.all[1]


def test_the_controller_chooses_by_the_id_of_the_directory() -> None:
    place, dirs = placement("/a", "/b")
    wanted = ORDERS._replace(directory_id=dirs.all[1].directory_id)

    assert place.dir_for(wanted, Counter({"/b": 9})) is dirs.all[1]


def test_a_client_chooses_once_and_ahead_of_the_controller() -> None:
    place, dirs = placement("/a", "/b")
    place.prefer("orders", 0, dirs.all[1])
    wanted = ORDERS._replace(directory_id=dirs.all[0].directory_id)

    assert place.dir_for(wanted, Counter()) is dirs.all[1]
    assert place.dir_for(wanted, Counter()) is dirs.all[0]


def test_the_oldest_preference_is_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placements, "MAX_PREFERRED", 2)
    place, dirs = placement("/a", "/b")
    for partition in range(3):
        place.prefer("orders", partition, dirs.all[1])

    chosen = [place.dir_for(ORDERS._replace(partition=n), Counter({"/b": 1})).path for n in range(3)]

    assert chosen == ["/a", "/b", "/b"]


def test_a_cordoned_directory_gets_nothing_unless_all_are_cordoned() -> None:
    place, dirs = placement("/a", "/b")
    dirs.cordon(["/a"])
    assert place.dir_for(ORDERS, Counter({"/b": 9})) is dirs.all[1]

    dirs.cordon(["/a", "/b"])
    assert place.dir_for(ORDERS, Counter({"/b": 9})) is dirs.all[0]


def test_a_log_that_may_lie_in_a_directory_out_of_service_is_not_made_anew() -> None:
    place, dirs = placement("/a", "/b")
    dirs.all[1].error = OSError(5, "gone")

    assert place.dir_for(ORDERS, Counter()) is dirs.all[0]
    with pytest.raises(KafkaError, match="may be in a directory that is out of service") as refused:
        place.dir_for(ORDERS._replace(is_new=False), Counter())
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_log_in_a_directory_that_is_not_here_is_not_made_anew() -> None:
    place, _ = placement("/a", "/b")
    elsewhere = (5000).to_bytes(16, "big")

    with pytest.raises(KafkaError, match=r"not among log\.dirs"):
        place.dir_for(ORDERS._replace(is_new=False, directory_id=elsewhere), Counter())


def test_a_log_whose_directory_is_gone_begins_anew_where_other_replicas_have_everything() -> None:
    place, dirs = placement("/a", "/b")
    elsewhere = (5000).to_bytes(16, "big")
    wanted = ORDERS._replace(is_new=False, directory_id=elsewhere, may_begin_anew=True)

    assert place.dir_for(wanted, Counter({"/a": 1})) is dirs.all[1]


def test_without_a_directory_in_service_there_is_no_place() -> None:
    place, dirs = placement("/a")
    dirs.all[0].error = OSError(5, "gone")

    with pytest.raises(KafkaError, match="No log directory is in service"):
        place.dir_for(ORDERS, Counter())
