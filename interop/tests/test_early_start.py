"""What a controller says before it has read the ACLs: the same as Apache Kafka's.

The other voter is never started, so that there is no metadata to read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interop.conformance.acl_matrix import SETTINGS, STRANGER, WITHOUT_USERS
from interop.conformance.acl_requests import NO_TOPIC_ID, ROOT, Resources, requests_of
from interop.conformance.compare import compare
from interop.conformance.talk import ANY, Side, Subject, Talk, Topic, Transcript
from interop.conformance.versions import latest_version, served_versions
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.protocol.messages import module_name
from pykafka_broker.testing.apache.nodes import Nodes, Software

pytestmark = pytest.mark.slow

#: Ours names the controllers of the configuration, and asks brokers to forward again: where Apache Kafka has
#: errors, which their clients get.
OTHERWISE = frozenset({"describe_cluster", "envelope"})
EARLY = {**SETTINGS, "early.start.listeners": "CONTROLLER"}
RESOURCES = Resources("x", (Topic("x", NO_TOPIC_ID),), ("x",), ("x",), ("x",), ())


def asked(software: Software, folder: Path) -> Transcript:
    """Every API of controllers as a user without rights asks it, and one as the super user does."""
    nodes = Nodes(folder, {1: software, 2: software}, properties=EARLY)
    node = nodes[1]
    transcript = Transcript()
    side = Side(software, node.controller_address, {}, frozenset({node.port}))
    try:
        nodes.start(1)
        stranger = Talk(Subject("early", "early/start", 0), side, transcript=transcript)
        stranger.log_in(STRANGER)
        for key in (each.key for each in CONTROLLER_APIS):
            if module_name(key) not in WITHOUT_USERS | OTHERWISE:
                for request in requests_of(module_name(key), latest_version(key), RESOURCES):
                    stranger.ask(request, ANY)
        root = stranger.another()
        root.log_in(ROOT)
        for request in requests_of("vote", served_versions("vote")[-1], RESOURCES):
            root.ask(request, ANY)
        stranger.close()
    finally:
        nodes.kill()
    return transcript


def test_who_has_rights_by_acls_is_refused_until_they_are_read(kafka_jars: Path, tmp_path: Path) -> None:
    apache, ours = (asked(software, tmp_path / software) for software in ("apache", "ours"))
    assert not [difference for difference in compare(apache, ours) if not difference.is_of_words]
