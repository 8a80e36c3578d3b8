"""The releases of Spark: the versions that each line runs on, and the coordinates of its Kafka connector and
of tables.

Pure. The connector has the version of Spark itself, and the Scala version of Spark's jars. The dependencies
of the connector (a Java client of Kafka, the provider of tokens, pools) are in its POM, and differ from patch
to patch.

The releases of Delta and Iceberg are those that this package was written with; a newer one of the same line
can be given as a package.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.system.named_tuple import NamedTuple

CONNECTOR = "spark-sql-kafka-0-10"
TOKEN_PROVIDER = "spark-token-provider-kafka-0-10"
#: The connector of the older API, DStreams, which `format("kafka")` does not find.
DSTREAMS_CONNECTOR = "spark-streaming-kafka-0-10"
SPARK_GROUP = "org.apache.spark"


class Coordinates(NamedTuple):
    """Maven's name of a jar."""

    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return ":".join(self)

    @property
    def stem(self) -> str:
        """The jar's path in a repository, without the suffix of the file."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.artifact}-{self.version}"

    @property
    def jar(self) -> str:
        """The name of its file."""
        return f"{self.artifact}-{self.version}.jar"


def parse_coordinates(text: str) -> Coordinates:
    """The coordinates in `group:artifact:version`.

    Raises:
        SparkError: the text has another form.
    """
    parts = text.strip().split(":")
    if len(parts) != 3 or not all(parts):
        raise SparkError(f"{text!r} is not GROUP:ARTIFACT:VERSION.")
    return Coordinates(*parts)


class Line(NamedTuple):
    """A line of releases, such as 4.0; `{scala}` in the coordinates stands for the Scala version."""

    name: str
    scala: tuple[str, ...]
    #: The versions of Java that it is tested with; an older one cannot load its classes.
    java: tuple[int, ...]
    delta: str | None
    iceberg: str | None


LINES = (
    Line(
        "3.5",
        ("2.12", "2.13"),
        (8, 11, 17),
        "io.delta:delta-spark_{scala}:3.3.2",
        "org.apache.iceberg:iceberg-spark-runtime-3.5_{scala}:1.10.0",
    ),
    Line(
        "4.0",
        ("2.13",),
        (17, 21),
        "io.delta:delta-spark_{scala}:4.0.0",
        "org.apache.iceberg:iceberg-spark-runtime-4.0_{scala}:1.10.0",
    ),
    Line(
        "4.1",
        ("2.13",),
        (17, 21),
        "io.delta:delta-spark_4.1_{scala}:4.1.0",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_{scala}:1.11.0",
    ),
    Line("4.2", ("2.13",), (17, 21), "io.delta:delta-spark_4.2_{scala}:4.4.0", None),
    Line("4.3", ("2.13",), (17, 21), None, None),
)

#: Table format -> the settings of a session that uses it. A catalog of Iceberg is the user's to configure.
TABLE_SETTINGS: dict[str, dict[str, str]] = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    },
}
TABLES = tuple(TABLE_SETTINGS)


def line_of(version: str) -> Line:
    """The line that a release of Spark belongs to.

    Raises:
        SparkError: this package does not know it.
    """
    name = ".".join(version.split(".")[:2])
    for line in LINES:
        if line.name == name:
            return line
    known = ", ".join(line.name for line in LINES)
    raise SparkError(
        f"Spark {version} is not among the releases that are known here ({known}): install one of them, "
        f"for example\n  pip install 'pyspark=={LINES[1].name}.*'"
    )


def connector(version: str, scala: str) -> Coordinates:
    """The Kafka connector of a release.

    Raises:
        SparkError: the release is not known, or not made for this Scala.
    """
    line = line_of(version)
    if scala not in line.scala:
        made_for = " and ".join(line.scala)
        raise SparkError(f"Spark {line.name} is made for Scala {made_for}, not for {scala}.")
    return Coordinates(SPARK_GROUP, f"{CONNECTOR}_{scala}", version)


def table_package(table: str, version: str, scala: str) -> Coordinates:
    """The jar of a table format, one of `TABLES`.

    Raises:
        SparkError: no release of it is known for this Spark.
    """
    line = line_of(version)
    found = {"delta": line.delta, "iceberg": line.iceberg}.get(table)
    if table not in TABLE_SETTINGS:
        raise SparkError(f"{table!r} is no table format that is known here: {', '.join(TABLES)}.")
    if found is None:
        raise SparkError(
            f"No release of {table.capitalize()} for Spark {line.name} is known here: give its "
            "coordinates as a package."
        )
    return parse_coordinates(found.format(scala=scala))


def packages(version: str, scala: str, tables: Iterable[str] = ()) -> tuple[Coordinates, ...]:
    """The packages of a session: the connector, and the jar of each table format.

    Raises:
        SparkError: one of them is not known.
    """
    return (connector(version, scala), *(table_package(table, version, scala) for table in tables))


def table_settings(tables: Iterable[str]) -> dict[str, str]:
    """The settings of a session that uses these table formats; extensions of several stand side by side."""
    settings: dict[str, str] = {}
    for table in tables:
        for key, value in TABLE_SETTINGS[table].items():
            settings[key] = f"{settings[key]},{value}" if key in settings else value
    return settings
