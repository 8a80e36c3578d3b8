"""An archive read without Spark: its Delta table as Arrow data, queried by DuckDB.

    python -m examples.spark.archive_with_duckdb --bootstrap 127.0.0.1:9092

Spark writes the archive, because it does so exactly once. To read it, one machine is often enough:
`deltalake` finds out from the table's log which files belong to the table, and DuckDB reads of these files
only the columns and days that a query needs. (`pip install duckdb deltalake`. A reader of the bare Parquet
files would also see files of batches that were interrupted.)
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from examples.spark import shop
from pykafka_broker.spark import kafka_session
from pykafka_broker.spark.archive import Table, Topics, archive_topics

if TYPE_CHECKING:
    from pathlib import Path

CLICKS = "clicks"
#: The value is JSON text, as it was sent.
CLICKS_OF_USERS = """
    SELECT decode(key) AS user,
           count(*) AS clicks,
           count(*) FILTER (json_extract_string(decode(value), '$.page') = '/cart') AS carts
    FROM archive
    WHERE topic = ?
    GROUP BY user
    ORDER BY clicks DESC, user
"""


def clicks_of_users(table: Path, topic: str) -> list[tuple[str, int, int]]:
    """For each user in the archive: the name, the number of clicks, and how many of them were on the cart."""
    import duckdb
    from deltalake import DeltaTable

    archive = DeltaTable(str(table)).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("archive", archive)
        return connection.execute(CLICKS_OF_USERS, [topic]).fetchall()


def main() -> None:
    chosen = shop.options(__doc__, "archive")
    spark = kafka_session("archive", tables=["delta"], jars=chosen.jars, conf=shop.SETTINGS)
    made = shop.made_up(shop.last_minutes(chosen.visits), chosen.visits, chosen.seed)
    shop.send(spark, chosen.bootstrap, CLICKS, made.clicks)
    table = chosen.output.resolve() / "table"
    checkpoint = chosen.output.resolve() / "checkpoint"
    archive_topics(spark, Topics(chosen.bootstrap, (CLICKS,)), Table("delta", str(table)), str(checkpoint))
    spark.stop()
    for user, clicks, carts in clicks_of_users(table, CLICKS):
        print(json.dumps({"user": user, "clicks": clicks, "carts": carts}))


if __name__ == "__main__":
    main()
