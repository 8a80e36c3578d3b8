"""`python -m interop.frames [API ...]`: capture the named APIs' frames anew, or those of all APIs."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interop.frames import security
from interop.frames.administration import Administration
from interop.frames.kafka import Kafka
from interop.frames.newer_groups import NewerGroups
from interop.frames.quorum import Quorum
from interop.frames.records_and_groups import RecordsAndGroups
from interop.frames.security import Security
from interop.frames.transactions import Transactions
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import API_NAMES, module_name, request_type
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.processes import free_port

WIRE = Path(__file__).parents[2] / "tests" / "protocol" / "wire"

#: The APIs in the order in which they are called; what changes most comes last.
APIS = {
    RecordsAndGroups: [
        *(18, 3, 60, 75, 1, 2, 23, 0, 10, 16, 11, 14, 12, 13, 8, 9, 15, 42, 47, 19, 37, 20, 32, 44, 33, 22),
        *(35, 61, 74, 21),
    ],
    Administration: [34, 43, 45, 46, 49, 48, 57, 71, 72],
    Transactions: [24, 25, 28, 26, 27, 65, 66],
    Security: [17, 36, 30, 29, 31, 38, 39, 40, 41, 51, 50],
    NewerGroups: [68, 69, 88, 89, 76, 77, 78, 79, 90, 91, 92, 83, 85, 84, 87, 86],
    Quorum: [55, 52, 53, 54, 59, 80, 81, 82, 62, 63, 67, 73, 56, 64, 70, 58],
}


def apache() -> tuple[ApacheBroker, str]:
    """A broker with short answers, an authorizer that allows everything, and a SASL listener."""
    sasl_address = f"127.0.0.1:{free_port()}"
    broker = ApacheBroker(
        {
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "metadata.log.max.snapshot.interval.ms": "2000",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{security.USER}",
            "delegation.token.secret.key": "golden",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'user_{security.USER}="{security.PASSWORD}";'
            ),
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        }
    )
    listeners = (
        f"PLAINTEXT://{broker.address},SASL://{sasl_address},CONTROLLER://127.0.0.1:{broker.controller_port}"
    )
    broker.properties |= {"listeners": listeners, "advertised.listeners": listeners}
    return broker, sasl_address


def frames_of(scenario: Any, api_key: int) -> str:
    """The file of one API."""
    name = module_name(api_key)
    prepare: Callable[[int], Any] = getattr(scenario, name)
    text = [f"# {name}: frames of Apache Kafka 4.3.1, by interop/frames"]
    for version in schema_of(request_type(api_key)).served_versions:
        request = prepare(version)
        print(f"{name} v{version}: {scenario.kafka.call(request, version)}")
        for what, frame in (
            ("request", scenario.kafka.request_frame),
            ("response", scenario.kafka.response_frame),
        ):
            text += ["", f"{what} v{version}", *textwrap.wrap(frame.hex(), 100)]
    return "\n".join(text) + "\n"


def main() -> None:
    names = {module_name(api_key): api_key for api_key in API_NAMES}
    wanted = {names[name] for name in sys.argv[1:]} or set(names.values())
    broker, sasl_address = apache()
    with broker:
        kafka = Kafka(broker.address)
        basics = RecordsAndGroups(kafka)
        for scenario in (
            basics,
            Administration(kafka),
            Transactions(kafka),
            Security(kafka, sasl_address),
            NewerGroups(kafka, basics.topic_id),
            Quorum(
                Kafka(f"127.0.0.1:{broker.controller_port}"),
                basics.topic_id,
                broker.data_dir / "__cluster_metadata-0",
            ),
        ):
            for api_key in APIS[type(scenario)]:
                if api_key in wanted:
                    (WIRE / f"{module_name(api_key)}.txt").write_text(frames_of(scenario, api_key))


if __name__ == "__main__":
    main()
