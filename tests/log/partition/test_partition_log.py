"""One log in place of another: a future log takes over from the one it was copied from."""

from __future__ import annotations

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import ORDERS, append, new_log


def test_a_log_that_lacks_records_of_its_source_does_not_take_its_place() -> None:
    files = MemoryFiles()
    source = new_log(files)
    append(source, b"a")
    append(source, b"b")
    copy = create_log(Environment(files), ORDERS._replace(directory="/other/orders-0.future"), LogConfig())
    append(copy, b"a")

    with pytest.raises(IllegalState, match=r"ends at 1 in /other/orders-0.future.* which ends at 2"):
        copy.take_over(source, "/other/orders-0")

    assert copy.directory == "/other/orders-0.future"
