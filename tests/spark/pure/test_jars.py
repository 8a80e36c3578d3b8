"""Jars into a folder: from a repository in a folder, and from one behind HTTP that misbehaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.installation import Installation
from pykafka_broker.spark.jars import Jar, fetch_jars, jars_in
from pykafka_broker.spark.releases import connector, parse_coordinates
from pykafka_broker.spark.repository import NotInRepositoryError, Repository
from pykafka_broker.spark.session import settings
from tests.support.maven import CONNECTOR_4_0, content_of, make_repository

CONNECTOR = connector("4.0.0", "2.13")
OWN_JARS = ("jsr305-3.0.0.jar", "lz4-java-1.8.0.jar", "spark-core_2.13-4.0.0.jar")
SPARK = Installation("4.0.0", Path("spark"), "4.0.0", "2.13", OWN_JARS)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(make_repository(tmp_path / "maven", CONNECTOR_4_0))


def test_the_connector_and_what_it_needs_are_fetched_once(repository: Repository, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "jars"
    told: list[Jar] = []
    found = fetch_jars(folder, [CONNECTOR], OWN_JARS, repository, told.append)
    assert told == found
    assert [(str(jar.coordinates), jar.was_fetched) for jar in found] == [(c, True) for c in CONNECTOR_4_0]
    assert all(jar.path.read_bytes() == content_of(jar.coordinates) for jar in found)
    assert sorted(path.name for path in folder.iterdir()) == sorted(jar.path.name for jar in found)

    again = fetch_jars(folder, [CONNECTOR], OWN_JARS, repository)
    assert not any(jar.was_fetched for jar in again)


def test_a_damaged_jar_in_the_folder_is_fetched_anew(repository: Repository, tmp_path: Path) -> None:
    [first, *_] = fetch_jars(tmp_path, [CONNECTOR], OWN_JARS, repository)
    first.path.write_bytes(b"half a")
    again = fetch_jars(tmp_path, [CONNECTOR], OWN_JARS, repository)
    assert [jar.was_fetched for jar in again] == [True, False, False, False]
    assert first.path.read_bytes() == content_of(CONNECTOR)


def test_a_jar_that_is_not_what_the_repository_says_leaves_nothing_behind(
    repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "maven" / f"{CONNECTOR.stem}.jar").write_bytes(b"something else")
    folder = tmp_path / "jars"
    with pytest.raises(SparkError, match=r"spark-sql-kafka-0-10_2\.13-4\.0\.0\.jar is damaged: its SHA-1 is"):
        fetch_jars(folder, [CONNECTOR], OWN_JARS, repository)
    assert list(folder.iterdir()) == []


def test_a_release_that_the_repository_does_not_have_is_named(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(
        NotInRepositoryError, match=r"does not have spark-sql-kafka-0-10_2\.13-4\.3\.0\.pom\."
    ):
        fetch_jars(tmp_path / "jars", [connector("4.3.0", "2.13")], OWN_JARS, repository)
    assert not (tmp_path / "jars").exists()


class Misbehaving(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = {"gone": 404, "forbidden": 403}.get(self.path.split("/")[1], 200)
        self.send_response(status)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"short")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Misbehaving) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_a_repository_behind_http_that_misbehaves_is_said_as_it_is(server: str) -> None:
    with pytest.raises(NotInRepositoryError):
        Repository(f"{server}/gone").pom(CONNECTOR)
    with pytest.raises(SparkError, match="the repository answers 403 Forbidden"):
        Repository(f"{server}/forbidden").pom(CONNECTOR)
    with pytest.raises(SparkError, match="is damaged"):
        Repository(f"{server}/torn").pom(CONNECTOR)


def test_a_repository_that_is_away_or_no_url_is_said_as_it_is() -> None:
    with pytest.raises(SparkError, match=r"http://127\.0\.0\.1:1 cannot be reached: .*refused"):
        Repository("http://127.0.0.1:1").pom(CONNECTOR)
    with pytest.raises(SparkError, match="'/srv/maven' is no URL of a Maven repository"):
        Repository("/srv/maven")


def test_a_session_uses_the_jars_of_a_folder_if_they_fit(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match=r"has no jars:\n  pykafka-broker spark jars --dest"):
        settings(SPARK, jars=tmp_path)
    found = fetch_jars(tmp_path, [CONNECTOR], OWN_JARS, repository)
    expected = sorted(str(jar.path) for jar in found)
    assert settings(SPARK, jars=tmp_path) == {"spark.jars": ",".join(expected)}
    assert jars_in(tmp_path, SPARK._replace(spark="4.0.1")), "another patch is let pass"
    with pytest.raises(
        SparkError, match=r"do not fit: The connector is of Spark 4\.0\.0, and Spark is 4\.1\.0"
    ):
        settings(SPARK._replace(spark="4.1.0"), jars=tmp_path)
    found[-1].path.unlink()
    with pytest.raises(SparkError, match="do not fit: The connector lacks commons-pool2"):
        settings(SPARK, jars=tmp_path)


def test_a_session_without_a_folder_asks_ivy_for_what_fits() -> None:
    assert settings(SPARK, tables=["delta"], packages=["g:own:1"]) == {
        "spark.jars.packages": f"{CONNECTOR},io.delta:delta-spark_2.13:4.0.0,{parse_coordinates('g:own:1')}",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
