"""What a checkpoint says of the archive job that wrote it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from pykafka_broker.spark.archive.checkpoints import read_progress, write_memory
from pykafka_broker.spark.archive.guard import Progress
from tests.support.checkpoints import make_checkpoint

ORDERS = ("orders", 0)


def initial(folder: Path, offset: int) -> None:
    """What Spark keeps of where a query began."""
    path = folder / "sources" / "0" / "0"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'\0v1\n{"orders":{"0":%d}}' % offset)


def test_a_folder_that_no_query_has_begun_with_is_new(tmp_path: Path) -> None:
    assert read_progress(tmp_path / "missing", "ck") is None
    write_memory(tmp_path / "ck", {"orders": "a"}, "table-1")
    assert read_progress(tmp_path / "ck", "ck") is None


def test_what_a_start_remembers_survives_a_start_that_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_memory(tmp_path, {"orders": "a"}, "table-1")
    initial(tmp_path, 7)
    before = read_progress(tmp_path, "ck")

    def is_full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("os.fsync", is_full)
    for cut_short in range(2):
        with pytest.raises(OSError, match="no space left"):
            write_memory(tmp_path, {"orders": f"b{cut_short}", "users": "c"}, "table-2")
        assert read_progress(tmp_path, "ck") == before


def test_before_the_first_batch_a_query_is_where_it_began(tmp_path: Path) -> None:
    write_memory(tmp_path, {"orders": "a"}, "table-1")
    initial(tmp_path, 7)
    known = read_progress(tmp_path, "ck")
    assert known == Progress("ck", {0: {ORDERS: 7}}, {}, {"orders": "a"}, "table-1", {ORDERS: 7})
    assert known.ends == {ORDERS: 7}


def test_a_first_batch_that_is_not_done_is_run_again_from_where_the_query_began(tmp_path: Path) -> None:
    make_checkpoint(tmp_path, [{ORDERS: 20}], done=0)
    initial(tmp_path, 7)
    known = read_progress(tmp_path, "ck")
    assert known == Progress("ck", {0: {ORDERS: 7}}, {0: {ORDERS: 20}}, {}, None, {ORDERS: 7})
    assert known.ends == {ORDERS: 20}


def test_a_later_batch_that_is_not_done_is_run_again_from_the_end_of_the_one_before(tmp_path: Path) -> None:
    make_checkpoint(tmp_path, [{ORDERS: 20}, {ORDERS: 30}], done=1)
    assert read_progress(tmp_path, "ck") == Progress("ck", {0: {ORDERS: 20}}, {0: {ORDERS: 30}}, {}, None)


def test_a_job_goes_on_behind_the_last_batch_that_is_done(tmp_path: Path) -> None:
    make_checkpoint(tmp_path, [{ORDERS: 20}, {ORDERS: 30}])
    assert read_progress(tmp_path, "ck") == Progress("ck", {0: {ORDERS: 30}}, {0: {ORDERS: 30}}, {}, None)
