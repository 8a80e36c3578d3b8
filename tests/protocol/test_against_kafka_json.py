"""Our declarations say what Apache Kafka's own schemas say.

The schemas are in Kafka's jars (fixture `kafka_jars`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import API_NAMES
from pykafka_broker.protocol.schema import array, boolean, i16, i32, message, string, struct, uuid
from pykafka_broker.testing.messages import everything
from tests.support.kafka_schemas import Json, differences, schemas_in

pytestmark = pytest.mark.gate("reads schemas in the jars, and starts no Java")


@pytest.fixture(scope="module")
def schemas(kafka_jars: Path) -> dict[str, Json]:
    return schemas_in(kafka_jars)


def test_every_declaration_agrees_with_apaches_schema(schemas: dict[str, Json]) -> None:
    found = [difference for cls in everything() for difference in differences(cls, schemas[cls.__name__])]

    assert found == []


def test_every_message_of_apache_is_declared(schemas: dict[str, Json]) -> None:
    alive = {name for name, schema in schemas.items() if schema["validVersions"] != "none"}

    assert {cls.__name__ for cls in everything()} == alive


def test_every_api_key_is_named_but_for_the_removed_ones(schemas: dict[str, Json]) -> None:
    requests = [schema for schema in schemas.values() if schema["type"] == "request"]
    names = {schema["apiKey"]: schema["name"].removesuffix("Request") for schema in requests}
    removed = {schema["apiKey"] for schema in requests if schema["validVersions"] == "none"}

    assert {key: name for key, name in names.items() if key not in removed} == API_NAMES
    assert removed == {4, 5, 6, 7}


def test_the_records_of_every_coordinator_and_of_the_controller_are_among_them(
    schemas: dict[str, Json],
) -> None:
    records = {schema["name"] for schema in schemas.values() if schema["type"] not in ("request", "response")}

    assert {
        *("OffsetCommitValue", "ConsumerGroupMemberMetadataValue", "StreamsGroupTopologyValue"),
        *("TransactionLogValue", "ShareSnapshotValue", "PartitionRecord", "VotersRecord"),
        *("ProducerSnapshot", "RemoteLogSegmentMetadataRecord", "DefaultPrincipalData"),
    } <= records & {cls.__name__ for cls in everything()}


# The comparison itself must be able to fail: a message, a schema that agrees, and every way to disagree.


@message()
class Leader:
    node_id: int = i32(entity="broker_id")


@message()
class Topic:
    name: str = string(entity="topic_name")
    partitions: list[int] = array(i32())


@message(
    api_key=7, versions="0-2", flexible="2+", listeners="broker controller", latest_version_unstable=True
)
class Sample:
    client_id: str | None = string(nullable="1+", compact=False)
    error_code: int = i16("1+", default=-1)
    topic_id: bytes = uuid("2+", default=bytes(16))
    topics: list[Topic] = array(Topic)
    enabled: bool = boolean("2+", tag=0, default=True)
    leader: Leader | None = struct(Leader, nullable="1+", default=None)
    observers: list[int] | None = array(i32(entity="broker_id"), "1+", nullable="2+", default=[])


AGREEING: Json = {
    "name": "Sample",
    "apiKey": 7,
    "validVersions": "0-2",
    "flexibleVersions": "2+",
    "listeners": ["controller", "broker"],
    "latestVersionUnstable": True,
    "fields": [
        {
            "name": "ClientId",
            "type": "string",
            "versions": "0+",
            "nullableVersions": "1+",
            "flexibleVersions": "none",
        },
        {"name": "ErrorCode", "type": "int16", "versions": "1+", "default": "-1"},
        {"name": "TopicId", "type": "uuid", "versions": "2+"},
        {
            "name": "Topics",
            "type": "[]Topic",
            "versions": "0+",
            "fields": [
                {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
                {"name": "Partitions", "type": "[]int32", "versions": "0+"},
            ],
        },
        {
            "name": "Enabled",
            "type": "bool",
            "versions": "2+",
            "tag": 0,
            "taggedVersions": "2+",
            "default": "true",
        },
        {
            "name": "Leader",
            "type": "Leader",
            "versions": "0+",
            "nullableVersions": "1+",
            "default": "null",
        },
        {
            "name": "Observers",
            "type": "[]int32",
            "versions": "1+",
            "nullableVersions": "2+",
            "entityType": "brokerId",
        },
    ],
    "commonStructs": [
        {
            "name": "Leader",
            "versions": "0+",
            "fields": [{"name": "NodeId", "type": "int32", "versions": "0+", "entityType": "brokerId"}],
        }
    ],
}


def test_a_schema_that_agrees_shows_no_difference() -> None:
    assert differences(Sample, AGREEING) == []
    assert schema_of(Sample).api_key == 7


@pytest.mark.parametrize(
    ("plant", "seen"),
    [
        (lambda s: s.update(name="Simple"), "Sample: name Sample, theirs Simple"),
        (lambda s: s.update(apiKey=8), "Sample: api key 7, theirs 8"),
        (lambda s: s.update(validVersions="0-3"), "Sample: versions range(0, 3), theirs range(0, 4)"),
        (lambda s: s.update(flexibleVersions="1+"), "Sample: flexible versions range(2, 32768)"),
        (lambda s: s.update(listeners=["broker"]), "Sample: listeners frozenset("),
        (lambda s: s.pop("listeners"), "Sample: listeners frozenset("),
        (lambda s: s.pop("latestVersionUnstable"), "Sample: latest version unstable True, theirs False"),
        (lambda s: s["fields"].pop(1), "Sample v1: fields ['client_id', 'error_code', 'topics', 'leader'"),
        (lambda s: s["fields"].reverse(), "Sample v0: fields ['client_id', 'topics', 'leader']"),
        (lambda s: s["fields"][1].update(versions="2+"), "Sample v1: fields"),
        (lambda s: s["fields"][1].update(type="int32"), "Sample v1.error_code: kind i16, theirs i32"),
        (lambda s: s["fields"][1].update(default="0"), "Sample v1.error_code: default -1, theirs 0"),
        (lambda s: s["fields"][1].pop("default"), "Sample v1.error_code: default -1"),
        (
            lambda s: s["fields"][0].pop("nullableVersions"),
            "Sample v1.client_id: nullable True, theirs False",
        ),
        (
            lambda s: s["fields"][0].update(nullableVersions="2+"),
            "Sample v1.client_id: nullable True, theirs False",
        ),
        (lambda s: s["fields"][0].pop("flexibleVersions"), "Sample v2.client_id: compact False, theirs True"),
        (
            lambda s: s["fields"][0].update(default="null"),
            "Sample v0.client_id: default REQUIRED, theirs None",
        ),
        (lambda s: s["fields"][4].update(tag=1), "Sample v2.enabled: tag 0, theirs 1"),
        (lambda s: s["fields"][4].update(taggedVersions="3+"), "Sample v2.enabled: tag 0, theirs None"),
        (lambda s: s["fields"][4].update(default="false"), "Sample v2.enabled: default True, theirs False"),
        (
            lambda s: s["fields"][3]["fields"][0].update(name="Topic"),
            "Sample v0.topics: fields ['name', 'partitions']",
        ),
        (
            lambda s: s["fields"][3]["fields"][1].update(type="[]int64"),
            "Sample v0.topics.partitions: element i32, theirs i64",
        ),
        (lambda s: s["fields"][3].update(type="Topic"), "Sample v0.topics: kind array, theirs struct"),
        (
            lambda s: s["fields"][3]["fields"][0].pop("entityType"),
            "Sample v0.topics.name: entity topic_name, theirs None",
        ),
        (
            lambda s: s["fields"][2].update(entityType="topicName"),
            "Sample v2.topic_id: entity None, theirs topic_name",
        ),
        (
            lambda s: s["fields"][6].update(entityType="producerId"),
            "Sample v1.observers: entity broker_id, theirs producer_id",
        ),
        (
            lambda s: s["fields"][6].update(nullableVersions="1+"),
            "Sample v1.observers: nullable False, theirs True",
        ),
        (lambda s: s["fields"][5].pop("nullableVersions"), "Sample v1.leader: nullable True, theirs False"),
        (lambda s: s["fields"][5].pop("default"), "Sample v0.leader: default None, theirs REQUIRED"),
        (
            lambda s: s["commonStructs"][0]["fields"][0].update(name="BrokerId"),
            "Sample v0.leader: fields ['node_id'], theirs ['broker_id']",
        ),
        (
            lambda s: s["commonStructs"][0]["fields"][0].update(versions="1+"),
            "Sample v0.leader: fields ['node_id'], theirs []",
        ),
        (
            lambda s: s["commonStructs"][0]["fields"][0].update(type="uint32"),
            "Sample v0.leader.node_id: kind i32, theirs u32",
        ),
    ],
)
def test_a_planted_difference_is_found(plant: Callable[[Json], object], seen: str) -> None:
    theirs = copy.deepcopy(AGREEING)
    plant(theirs)

    assert any(difference.startswith(seen) for difference in differences(Sample, theirs))
