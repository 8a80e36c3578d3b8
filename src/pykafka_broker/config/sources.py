"""The sources of a broker's static configuration: file, environment, overrides, start-up defaults.

Highest precedence first: overrides (`--override`, `--listen`, `--metrics`, `--data-dir`), environment
variables, the properties file, Kafka's defaults. Two choices are ours:

* A properties file is complete, as in Apache Kafka. Without one, the values of `STANDALONE` apply below the
  environment and the overrides: a single node that needs no other setting. They are those of the
  `server.properties` of Kafka 4.3, with three exceptions: only the loopback interface is served; the
  controller, which no other node needs to reach, has no listener; the first member of a group does not wait
  3 s for others, which would delay every start of a test.
* The default data directory is `pykafka-data` in the current directory, not a system folder that may be
  emptied.

Environment variables are read as Kafka's container image reads them: `KAFKA_` is taken off, the rest is
lower case, `___` becomes `-`, `__` becomes `_`, `_` becomes `.`. `KAFKA_CFG_`, of the Bitnami image, does the
same; if both set a key to different values, `KAFKA_` wins and a warning is logged. The cluster id comes from
CLUSTER_ID or one of Bitnami's names for it. KAFKA_ADVERTISED_HOST_NAME, of a third image, is the host to
advertise. The variables for key stores are in `image_secrets.py`. Unlike in those images, the environment
adds to a properties file and never replaces it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping

from pykafka_broker.config.image_secrets import CREDENTIALS, STORES, secrets_of_image
from pykafka_broker.config.keys import PROVIDERS, ConfigError
from pykafka_broker.config.properties_file import read_properties
from pykafka_broker.config.settings import BrokerConfig

logger = logging.getLogger("kafka.server.KafkaConfig")

DEFAULT_DATA_DIR = "pykafka-data"

#: The values of a node that is started without a properties file.
STANDALONE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "controller.listener.names": "CONTROLLER",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}

#: Variables of container images that are not configuration keys. `start` creates the topics of the last.
NOT_KEYS = frozenset(
    "KAFKA_" + name
    for name in (
        "VERSION",
        "HEAP_OPTS",
        "LOG4J_OPTS",
        "OPTS",
        "JMX_OPTS",
        "JVM_PERFORMANCE_OPTS",
        "GC_LOG_OPTS",
        "LOG4J_ROOT_LOGLEVEL",
        "LOG4J_LOGGERS",
        "TOOLS_LOG4J_LOGLEVEL",
        "JMX_HOSTNAME",
        "ADVERTISED_HOST_NAME",
        "CREATE_TOPICS",
        # Bitnami's. Those for logins and TLS are not listed here, so that they are logged as unknown keys.
        "CLUSTER_ID",
        "KRAFT_CLUSTER_ID",
        "ENABLE_KRAFT",
        "INITIAL_CONTROLLERS",
        "SKIP_KRAFT_STORAGE_INIT",
        "KRAFT_BOOTSTRAP_SCRAM_USERS",
        "CLIENT_LISTENER_NAME",
        "CFG_MAX_REQUEST_SIZE",
        "CFG_MAX_PARTITION_FETCH_BYTES",
        "BASE_DIR",
        "HOME",
        "VOLUME_DIR",
        "DATA_DIR",
        "CONF_DIR",
        "CONF_FILE",
        "MOUNTED_CONF_DIR",
        "CERTS_DIR",
        "INITSCRIPTS_DIR",
        "DAEMON_USER",
        "DAEMON_GROUP",
    )
)
#: Variables that set keys of other names (`image_secrets.py`).
_HANDLED = frozenset((*STORES, *CREDENTIALS))
#: The Java option for a file with logins; looked for in `KAFKA_OPTS`, which the image passes to Java.
_JAAS_FILE = "java.security.auth.login.config"
#: The variables that name the cluster id of a new data directory, strongest first.
CLUSTER_ID_VARIABLES = ("CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID")
#: Variables that are a prefix alone, and name no key.
_PREFIXES = ("KAFKA_", "KAFKA_CFG_")
_QUORUM_KEYS = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")

#: Keys with their values, or `key=value` texts, or one such text.
Overrides = Mapping[str, "str | float | os.PathLike[str]"] | Iterable[str]


def load_config(
    *,
    file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Overrides = (),
    listen: str | None = None,
    metrics: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    cluster_id: str | None = None,
) -> BrokerConfig:
    """The static configuration from all its sources.

    `environ` is os.environ or a part of it; `overrides` are a mapping or `key=value` texts; `listen` and
    `metrics` are `host:port`.

    Raises:
        ConfigError: something in them cannot be read or accepted.
        OSError: the file cannot be read.
    """
    environ = environ or {}
    from_environment = read_environment(environ)
    from_file = {} if file is None else read_properties(file)
    overridden = parse_overrides(overrides)
    configured = {**from_file, **from_environment, **overridden}
    if listen is not None:
        configured["listeners"] = _with_client_listener(configured, listen)
        if "advertised.listeners" not in overridden:
            # The file's advertised.listeners belong to its own listeners.
            configured.pop("advertised.listeners", None)
    if metrics is not None:
        configured["metrics.listeners"] = f"http://{metrics}"
    if data_dir is not None:
        configured["log.dirs"] = os.fspath(data_dir)
        configured.pop("log.dir", None)
    standalone = file is None and not any(configured.get(key) for key in _QUORUM_KEYS)
    if (host := environ.get("KAFKA_ADVERTISED_HOST_NAME")) and "advertised.listeners" not in configured:
        configured["advertised.listeners"] = _at_host(host, {**STANDALONE, **configured})
    assumed: set[str] = set()
    if file is None:
        if "listeners" not in configured and "advertised.listeners" in configured:
            configured["listeners"] = _on_every_interface(configured["advertised.listeners"])
        below = STANDALONE
        if "broker.id" in configured:
            below = {key: value for key, value in STANDALONE.items() if key != "node.id"}
        assumed = below.keys() - configured.keys()
        configured = {**below, **configured}
    if "log.dir" not in configured and "log.dirs" not in configured:
        configured["log.dirs"] = DEFAULT_DATA_DIR
    if configured.get(PROVIDERS):
        # Imported only if there are any, as most nodes have none.
        from pykafka_broker.config.providers import resolved

        configured = resolved(configured, environ)
    return BrokerConfig(
        configured,
        cluster_id=cluster_id or _cluster_id(environ),
        standalone=standalone,
        initial_controllers=environ.get("KAFKA_INITIAL_CONTROLLERS") or None,
        assumed=assumed,
    )


def read_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings in environment variables; `KAFKA_X` wins over `KAFKA_CFG_X`.

    Raises:
        ConfigError: a file that one of them names cannot be read.
    """
    if _JAAS_FILE in environ.get("KAFKA_OPTS", ""):
        logger.warning(
            "KAFKA_OPTS names a JAAS file, which is not read: put the login of each listener and mechanism "
            "into listener.name.<listener>.<mechanism>.sasl.jaas.config"
        )
    variables = [
        name
        for name in environ
        if name.startswith("KAFKA_")
        and name not in NOT_KEYS
        and name not in _HANDLED
        and name not in _PREFIXES
    ]
    aliases = {name: name.removeprefix("KAFKA_CFG_") for name in variables if name.startswith("KAFKA_CFG_")}
    settings = {key_of_variable(rest): environ[name] for name, rest in aliases.items()}
    for name in variables:
        if name in aliases:
            continue
        key = key_of_variable(name.removeprefix("KAFKA_"))
        if settings.get(key, environ[name]) != environ[name]:
            logger.warning("%s counts, and the other value of %s from KAFKA_CFG_ does not", name, key)
        settings[key] = environ[name]
    return settings | secrets_of_image(environ)


def _cluster_id(environ: Mapping[str, str]) -> str | None:
    return next((found for name in CLUSTER_ID_VARIABLES if (found := environ.get(name))), None)


def key_of_variable(name: str) -> str:
    """The key that a variable without its prefix stands for."""
    dotted = name.lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")


def parse_overrides(overrides: Overrides) -> dict[str, str]:
    """The values that the overrides set; of `key=value` texts a later one wins over an earlier one.

    Raises:
        ConfigError: a text has no `=` or no key, or a value is of a type that a properties file cannot hold.
    """
    if isinstance(overrides, Mapping):
        return {key: _text(key, value) for key, value in overrides.items()}
    settings = {}
    for entry in (overrides,) if isinstance(overrides, str) else overrides:
        key, equals, value = entry.partition("=")
        if not equals or not key.strip():
            # The text after the key may be a secret.
            shown, _, rest = entry.strip().partition(" ")
            if rest:
                shown += " …"
            raise ConfigError(f"{shown!r} is not an override: write key=value")
        settings[key.strip()] = value.strip()
    return settings


def _text(key: str, value: object) -> str:
    """The value as a properties file would have it.

    Other types, such as None and lists, are refused: their Python text would become the value.
    """
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise ConfigError(f"{value!r} is not a value of {key}: give a text, a number, True, False or a path")


def _with_client_listener(configured: Mapping[str, str], listen: str) -> str:
    """`listeners` with the clients' listener at `listen`; the controllers' listeners stay."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or "://" in host:
        raise ConfigError(f"{listen!r} is not an address to listen on: write HOST:PORT")
    if host in ("0.0.0.0", "*"):
        # Every interface; the broker then advertises the address at which each client reached it.
        host = ""
    controllers = configured.get("controller.listener.names", "").split(",")
    kept = [
        entry.strip()
        for entry in configured.get("listeners", "").split(",")
        if entry.strip() and entry.strip().partition("://")[0] in controllers
    ]
    name = configured.get("inter.broker.listener.name", "PLAINTEXT")
    return ",".join([f"{name}://{host}:{port}", *kept])


def _at_host(host: str, configured: Mapping[str, str]) -> str:
    """Advertised listeners at this host, with the ports of `listeners`; controllers' are left out."""
    controllers = configured.get("controller.listener.names", "").split(",")
    entries = (entry.strip().partition("://") for entry in configured["listeners"].split(","))
    return ",".join(
        f"{name}://{host}:{address.rpartition(':')[2]}"
        for name, _, address in entries
        if name not in controllers
    )


def _on_every_interface(advertised: str) -> str:
    """Listeners for these advertised ones, on all interfaces, as Kafka's image derives them."""
    entries = (entry.strip().partition("://") for entry in advertised.split(",") if entry.strip())
    return ",".join(f"{name}://0.0.0.0:{address.rpartition(':')[2]}" for name, _, address in entries)
