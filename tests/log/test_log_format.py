"""The bytes on disk are those that FORMAT.md shows."""

from __future__ import annotations

import re
from pathlib import Path

import pykafka_broker.log
from pykafka_broker.log.disk import names as file_names
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import FOLDER, NOW, end_transaction, names, new_log, produce

FORMAT = Path(pykafka_broker.log.__file__).with_name("FORMAT.md").read_text()


def worked_example() -> dict[str, bytes]:
    """The hexadecimal blocks behind `file name` lines."""
    blocks = re.findall(r"^`(\d{20}\.\w+)`\n\n((?:    [0-9a-f ]+\n)+)", FORMAT, re.MULTILINE)
    return {name: bytes.fromhex("".join(block.split())) for name, block in blocks}


def test_the_worked_example_of_the_format_is_what_is_written() -> None:
    files = MemoryFiles()
    log = new_log(files, index_interval_bytes=0)
    produce(log, 7, 0, b"hi", timestamp=NOW, transactional=True)
    end_transaction(log, 7, commit=False, coordinator_epoch=2)
    produce(log, 7, 1, b"ho", timestamp=NOW + 1)
    assert log.close()

    written = {name: files.read_file(f"{FOLDER}/{name}") for name in names(files)}

    assert written.pop("partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert written.pop("leader-epoch-checkpoint") == b"0\n1\n0 0\n"
    assert written == worked_example()


def test_every_file_that_is_written_is_described() -> None:
    for value in vars(file_names).values():
        if isinstance(value, str) and re.fullmatch(r"\.?[a-z_]+[-.a-z]*", value) and "pykafka" not in value:
            assert value in FORMAT or value == "remote-log-index-cache", value
