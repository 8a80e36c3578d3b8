"""The records of an archive that could not be decoded.

A bad record is a row of the table like any other, with its bytes and the reason. Delta and Iceberg cannot
commit two tables at once, so a separate table would lack bad records, or have them twice, after a crash. With
one table, a replay finds the whole topic in the rows, and a corrected schema can be applied to the bytes
later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_format import KEY, VALUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The suffixes of columns with decoded data, and with the reasons why some could not be decoded.
DATA, ERROR = "_data", "_error"
REASON = "reason"


def dead_letters(rows: DataFrame) -> DataFrame:
    """The rows of an archive whose key or value could not be decoded, with the column `reason`.

    Raises:
        SparkError: no job has decoded keys or values of this archive.
    """
    columns = [name for name in (KEY, VALUE) if f"{name}{ERROR}" in rows.columns]
    if not columns:
        raise SparkError("No key and no value of this table was decoded.")
    reasons = (F.concat(F.lit(f"{name}: "), F.col(f"{name}{ERROR}")) for name in columns)
    return rows.withColumn(REASON, F.concat_ws("; ", *reasons)).where(F.col(REASON) != "")
