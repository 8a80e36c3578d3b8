"""The stock clients behind one interface (`client.py`): a scenario is written once for all of them."""

from __future__ import annotations

import importlib

from interop.clients.client import Client
from interop.clients.login import Login

#: Where the adapters are. A module is imported when its client is asked for: another may not be installed.
ADAPTERS = {
    "kafka-python": ("interop.clients.kafka_python", "KafkaPython"),
    "aiokafka": ("interop.clients.aiokafka_client", "Aiokafka"),
    "confluent-kafka": ("interop.clients.confluent", "Confluent"),
    "java": ("interop.clients.java", "Java"),
    "java-3.9": ("interop.clients.java", "Java39"),
    "franz-go": ("interop.clients.drivers", "FranzGo"),
    "kafka-go": ("interop.clients.drivers", "KafkaGo"),
    "kafkajs": ("interop.clients.drivers", "Kafkajs"),
    "kafka-python-2.0": ("interop.clients.drivers", "OldKafkaPython"),
    "kcat": ("interop.clients.kcat", "Kcat"),
    "rust-rdkafka": ("interop.clients.drivers", "RustRdkafka"),
    "platformatic": ("interop.clients.drivers", "Platformatic"),
}


def connect(name: str, bootstrap: str, login: Login | None = None) -> Client:
    """A client; with a login, of a secured listener."""
    module, adapter = ADAPTERS[name]
    client: Client = getattr(importlib.import_module(module), adapter)(bootstrap, login)
    return client
