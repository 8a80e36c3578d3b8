"""The JVM of a classic session, by which this package reaches every folder that Hadoop reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.spark.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def classic_jvm(spark: SparkSession) -> Any:
    """The JVM.

    Raises:
        SparkError: the session is one of Spark Connect.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise SparkError(
            "An archive job needs a classic session: it looks into its checkpoint, which Spark Connect does "
            "not show."
        )
    return jvm


def exists(spark: SparkSession, name: str) -> bool:
    """Whether there is a file or a folder at a path or URI of Hadoop's."""
    path = classic_jvm(spark).org.apache.hadoop.fs.Path(name)
    return bool(path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(path))
