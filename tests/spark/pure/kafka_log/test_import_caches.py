"""Zip files that modules may come from cost a task of Spark nothing when it begins."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile
from zipimport import zipimporter

import pytest
from pyspark.sql.types import LongType, StructType

from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.spark.kafka_log.data_source import KafkaLog
from pykafka_broker.spark.kafka_log.import_caches import forget_zip_files
from tests.spark.pure.kafka_log.logs import fill, new_partition

MODULES = ("zipped_one", "zipped_two")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A zip file with two modules, among the places of modules; one of them is imported."""
    path = tmp_path / "modules.zip"
    with ZipFile(path, "w") as file:
        for name in MODULES:
            file.writestr(f"{name}.py", f"NAME = {name!r}\n")
    monkeypatch.syspath_prepend(path)
    importlib.import_module(MODULES[0])
    yield path
    for name in MODULES:
        sys.modules.pop(name, None)


def test_a_forgotten_zip_file_still_has_its_modules(archive: Path) -> None:
    assert isinstance(sys.path_importer_cache[str(archive)], zipimporter)
    forget_zip_files()
    assert str(archive) not in sys.path_importer_cache
    importlib.invalidate_caches()
    importlib.import_module(MODULES[1])


def test_a_plan_and_a_task_leave_no_zip_file_behind(archive: Path, tmp_path: Path) -> None:
    fill(new_partition(OsFileSystem(), directory=str(tmp_path)), 3)
    source = KafkaLog({"path": str(tmp_path), "subscribe": "orders"})
    reader = source.reader(StructType().add("offset", LongType()))
    [split] = reader.partitions()
    assert str(archive) not in sys.path_importer_cache
    importlib.import_module(MODULES[1])
    batches: Any = reader.read(split)
    assert [batch.num_rows for batch in batches] == [3]
    assert str(archive) not in sys.path_importer_cache
