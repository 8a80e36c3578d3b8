"""What an archive job looks at before it reads, without a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from pykafka_broker.spark.archive.job import examine
from pykafka_broker.spark.archive.settings import Start, Table
from pykafka_broker.spark.checkpoint.topics import Range, Topic
from pykafka_broker.spark.errors import SparkError

if TYPE_CHECKING:
    from pykafka_broker.spark.archive.checkpoints import CheckpointFolder
    from pykafka_broker.spark.archive.tables import ArchiveTable


class OtherTable:
    """A table without the columns of an archive, which is not asked for them."""

    table = Table("delta", "lake/numbers")

    def exists(self) -> bool:
        return True

    def archive_id(self) -> None:
        return None


class NewCheckpoint:
    def progress(self) -> None:
        return None


def test_a_table_that_no_archive_job_made_is_refused_before_its_columns_are_looked_at() -> None:
    folder, table = cast("CheckpointFolder", NewCheckpoint()), cast("ArchiveTable", OtherTable())
    topics = {"orders": Topic("id", {0: Range(0, 1)})}
    with pytest.raises(SparkError) as refused:
        examine(folder, table, topics, Start.EARLIEST)
    assert str(refused.value) == (
        "lake/numbers was not made by an archive job: name a table that does not exist yet."
    )
