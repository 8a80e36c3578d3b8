"""A Kafka broker in Python: Kafka's wire protocol, Kafka's log format, no JVM.

    from pykafka_broker import Broker, Cluster, load_config

    async with Broker(load_config(data_dir="data", listen="127.0.0.1:0")) as broker:
        print(broker.bootstrap_servers)

    with Broker(load_config(data_dir="data", listen="127.0.0.1:0")) as broker:  # in a thread of its own
        print(broker.bootstrap_servers)

    async with Cluster(nodes=3) as cluster:  # or `with`: three nodes in this process
        print(cluster.bootstrap_servers)

    with Broker(config, security=Security(users={"alice": "secret"}, tls=True)) as broker:  # or a Cluster
        print(broker.client_settings("alice").java)

`load_config` reads the same sources as a start on the command line: a properties file, environment variables,
overrides. Without a file a group's first member does not wait for others, as tests and development want it
(`overrides={"group.initial.rebalance.delay.ms": 3000}` for Kafka's default).

Everything is imported on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

#: As in `typing`, whose import takes longer than it takes to press Ctrl-C: see interrupts.py.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafka_broker.broker.broker import Broker
    from pykafka_broker.broker.security.declared import Security
    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.config.sources import load_config
    from pykafka_broker.local_cluster.cluster import BlockingCluster, Cluster

__version__ = "0.2.0"
__all__ = ["BlockingCluster", "Broker", "BrokerConfig", "Cluster", "Security", "__version__", "load_config"]


def __getattr__(name: str) -> Any:
    if name == "Broker":
        from pykafka_broker.broker.broker import Broker

        return Broker
    if name == "BrokerConfig":
        from pykafka_broker.config import BrokerConfig

        return BrokerConfig
    if name == "BlockingCluster":
        from pykafka_broker.local_cluster.cluster import BlockingCluster

        return BlockingCluster
    if name == "Cluster":
        from pykafka_broker.local_cluster.cluster import Cluster

        return Cluster
    if name == "Security":
        from pykafka_broker.broker.security.declared import Security

        return Security
    if name == "load_config":
        from pykafka_broker.config.sources import load_config

        return load_config
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
