"""`format("kafka_log")` made known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.installation import pyspark_version
from pykafka_broker.spark.python_packages import ARROW, insist_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The first versions of Spark with data sources in Python, and with filters for them.
_FIRST, _FIRST_WITH_FILTERS = (4, 0), (4, 1)
_FILTERS = "spark.sql.python.filterPushdown.enabled"


def register_kafka_log(spark: SparkSession) -> None:
    """Make `format("kafka_log")` known to a session, classic or of Spark Connect.

    On Spark 4.1 and later, filters on topic, partition, offset and timestamp leave out what need not be
    read, if `spark.sql.python.filterPushdown.enabled` is true when this is called.

    Raises:
        SparkError: pyspark is older than 4.0, or a package is missing.
    """
    version = pyspark_version()
    numbers = tuple(int(number) for number in version.split(".")[:2])
    if numbers < _FIRST:
        raise SparkError(f"kafka_log needs Spark 4.0 or later, and pyspark {version} is installed.")
    insist_on(ARROW, "kafka_log needs")
    from pykafka_broker.spark.kafka_log.data_source import FilteringKafkaLog, KafkaLog

    takes_filters = numbers >= _FIRST_WITH_FILTERS and spark.conf.get(_FILTERS, "false") == "true"
    spark.dataSource.register(FilteringKafkaLog if takes_filters else KafkaLog)
