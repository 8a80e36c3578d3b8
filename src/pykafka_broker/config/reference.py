"""The page `docs/configuration.md`, from the tables of keys; `make fix` writes it.

The facts about keys are in the tables; here are only the sentences around them and the differences from
Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pykafka_broker.config.authorizer import AUTHORIZER_KEYS
from pykafka_broker.config.broker import BROKER, BROKER_KEYS, DYNAMIC_ONLY_KEYS, OWN_KEYS
from pykafka_broker.config.client_metrics import CLIENT_METRICS_KEYS
from pykafka_broker.config.group import ASSIGNOR_CLASSES, GROUP_KEYS
from pykafka_broker.config.keys import (
    ACTS,
    REFUSED,
    REQUIRED,
    UNHEEDED,
    BootstrapServers,
    Key,
    Voters,
    render,
)
from pykafka_broker.config.sources import CLUSTER_ID_VARIABLES, DEFAULT_DATA_DIR, STANDALONE
from pykafka_broker.config.topic import BROKER_SYNONYMS, TOPIC_KEYS
from pykafka_broker.system.named_tuple import NamedTuple

#: Key -> its difference from Apache Kafka, unless the tables, the refused keys or `STANDALONE` show it.
DIFFERENCES = {
    "controller.quorum.append.linger.ms": "records are written at once, and those that come while the disk "
    "syncs share the next sync.",
    "controller.quorum.fetch.timeout.ms": "where nothing listens at the leader's address any more, its "
    "process has ended, and the followers elect another one at once.",
    "config.providers": "those of Apache Kafka for files, folders and the environment; others are refused.",
    "broker.session.timeout.ms": "silence does not fence the broker beside the active controller.",
    "log.dirs": f"where neither this nor `log.dir` is set, `{DEFAULT_DATA_DIR}` in the current directory.",
    "log.dir": f"unset, `{DEFAULT_DATA_DIR}` in the current directory.",
    "group.consumer.assignors": f"only {' and '.join(sorted(set(ASSIGNOR_CLASSES.values())))}; "
    "an assignor of one's own is refused.",
}

INTRODUCTION = f"""\
# Configuration

Every key of Apache Kafka 4.3 is known here, with its type, default and bounds. This page is made from the
tables that the broker itself uses (`make fix`).

## Where a value comes from

Stronger first:

1. dynamic values: of this broker, then of all brokers (`pykafka-broker configs alter --broker 1`,
   `--broker-defaults`, or any Kafka client). They are kept with the metadata and survive restarts;
2. `--override key=value`; `--listen`, `--metrics` and `--data-dir` are short for `listeners`,
   `metrics.listeners` and `log.dirs`;
3. environment variables;
4. the properties file given with `--config`;
5. without such a file, the values under [Without a properties file](#without-a-properties-file);
6. Kafka's defaults.

`load_config()` in a program reads the same places, but environment variables only with `environ=os.environ`.

A running broker says what is in force, and where each value comes from:

```console
$ pykafka-broker configs alter --broker 1 --set max.connections=500
Completed updating config for broker 1.
$ pykafka-broker configs describe --broker 1
Dynamic configs for broker 1 are:
  max.connections=500 sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:max.connections=500, ...}}
$ pykafka-broker configs alter --broker 1 --delete max.connections
Completed updating config for broker 1.
$ pykafka-broker configs describe --broker 1 --all
All configs for broker 1 are:
...
```

## What becomes of a key

* It **acts** as in Apache Kafka, unless its row says otherwise.
* It **makes no difference**: there is nothing here for it to tune, such as threads. It is accepted, kept and
  shown, and named in the log once if its value is not the default.
* It is **refused** at the start unless it has its default, because ignoring it would be unsafe.
* It is **unknown**: no key of Kafka. A broker keeps it, as Apache Kafka does, because a plug-in may know it.
  A warning in the log names it and the key that may have been meant. A topic or a group refuses it.

*Read-only* keys are set at the start. *Per broker* keys may also be changed for one running broker,
*cluster-wide* ones for one or for all brokers at once.

## Environment variables

A key is set by `KAFKA_` and its name in upper case, with `_` for `.`, `__` for `_`, and `___` for `-`:
`KAFKA_LOG_RETENTION_HOURS=1`. `KAFKA_CFG_` does the same, as in the Bitnami image; where both set a key to
different values, the one without `CFG_` counts, and a warning says so.

| variable | what it does |
|---|---|
| {", ".join(f"`{name}`" for name in CLUSTER_ID_VARIABLES)} | \
the cluster that a new data folder belongs to; the first variable that is set counts |
| `KAFKA_INITIAL_CONTROLLERS` | as `format --initial-controllers`, for a new data folder |
| `KAFKA_ADVERTISED_HOST_NAME` | the host of `advertised.listeners`, with the ports of `listeners` |
| `KAFKA_CREATE_TOPICS` | topics to create at the start, as `name:partitions:replicas[:cleanup.policy],...` |
| `KAFKA_LOG4J_ROOT_LOGLEVEL`, `KAFKA_LOG4J_LOGGERS` | log levels, as `INFO` and `logger=LEVEL,...` |
| `PYKAFKA_BROKER_LOG_FORMAT` | `json` for a log of one object a line, as `start --log-format json` |
| `PYKAFKA_BROKER_BOOTSTRAP_SERVER` | where the commands of `pykafka-broker` find a cluster |
| `PYKAFKA_BROKER_COMMAND_CONFIG`, `PYKAFKA_BROKER_CA` | how commands connect: `--command-config` and `--ca` |
| `PYKAFKA_BROKER_USER`, `PYKAFKA_BROKER_PASSWORD` | the user with which commands log in: `--user` |

Variables of container images that tune a JVM or say where the image keeps its own files (`KAFKA_HEAP_OPTS`,
`KAFKA_JMX_OPTS`, `KAFKA_ENABLE_KRAFT`, `ALLOW_PLAINTEXT_LISTENER`, ...) are ignored. Those with which
Bitnami's image sets logins and TLS (`KAFKA_CLIENT_USERS`, `KAFKA_TLS_TYPE`, ...) are named in the log as
unknown keys: [security.md](security.md) says which keys set logins and TLS.
"""

#: The form of a list's entries, for validators that do not describe it.
FORMS: dict[type, str] = {Voters: "id@host:port, ...", BootstrapServers: "host:port, ..."}


class Column(NamedTuple):
    """A column of a table of keys."""

    header: str
    cell: Callable[[Key], str]


def _default(key: Key) -> str:
    if key.default is REQUIRED:
        return "required"
    text = render(key.default, key.type)
    return "unset" if text is None else "empty" if text == "" else f"`{text}`"


def _valid(key: Key) -> str:
    """Bounds as Apache Kafka writes them; the form of addresses, of which it says only "non-empty"."""
    form = FORMS.get(type(key.validator))
    return form or ("" if key.validator is None else str(key.validator))


def _told(key: Key) -> str:
    """The purpose of a key, and its difference from Apache Kafka, if any."""
    different = DIFFERENCES.get(key.name)
    return key.documentation if different is None else f"{key.documentation} **Here:** {different}"


def _told_with_handling(key: Key) -> str:
    return f"Makes no difference. {_told(key)}" if key.handling == UNHEEDED else _told(key)


def _broker_keys(key: Key) -> str:
    return ", ".join(f"`{name}`" for name, _ in BROKER_SYNONYMS.get(key.name, ()))


KEY = Column("key", lambda key: f"`{key.name}`")
TYPE = Column("type", lambda key: key.type.name.lower())
DEFAULT = Column("default", _default)
VALID = Column("valid values", _valid)
CHANGED = Column("changed", lambda key: key.scope.replace("per-broker", "per broker"))
PURPOSE = Column("what it does", _told)
PURPOSE_AND_HANDLING = Column("what it does", _told_with_handling)
BROKER_KEY = Column("broker keys", _broker_keys)

OF_BROKERS = (KEY, TYPE, DEFAULT, VALID, CHANGED, PURPOSE)
OF_OTHERS = (KEY, TYPE, DEFAULT, VALID, PURPOSE_AND_HANDLING)


class Section(NamedTuple):
    """A heading, a few sentences, and a table of keys."""

    heading: str
    text: str
    keys: tuple[Key, ...]
    columns: tuple[Column, ...]

    def __str__(self) -> str:
        return f"## {self.heading}\n\n{self.text}\n\n{_table(self.keys, self.columns)}"


def _broker_keys_that(handling: str) -> tuple[Key, ...]:
    return tuple(key for key in BROKER_KEYS if key.handling == handling and not key.internal)


SECTIONS = (
    Section(
        "Without a properties file",
        """\
A broker that is started without `--config`, or by a program that calls `load_config()` without `file`, gets
these values, which suit development and tests. Each of them may be set otherwise. DescribeConfigs shows them
as configured (`STATIC_BROKER_CONFIG`). Without `controller.quorum.*` the node is alone, and its controller
needs no listener.""",
        tuple(BROKER[name] for name in STANDALONE),
        (KEY, Column("value", lambda key: f"`{STANDALONE[key.name]}`"), Column("Kafka's default", _default)),
    ),
    Section(
        "Broker keys that act",
        "In the order of their subjects; [1,...] is 1 or more. What differs here follows **Here:**.",
        _broker_keys_that(ACTS),
        OF_BROKERS,
    ),
    Section(
        "Broker keys for a running broker",
        "Set with `configs alter`; in a file they are unknown, as in Apache Kafka.",
        DYNAMIC_ONLY_KEYS,
        OF_BROKERS,
    ),
    Section(
        "Broker keys that Apache Kafka does not have",
        "DescribeConfigs shows those that are set.",
        OWN_KEYS,
        OF_BROKERS,
    ),
    Section(
        "Keys of the authorizer",
        """\
They count if `authorizer.class.name` is set, and are read at the start. DescribeConfigs shows them as unknown
keys, as Apache Kafka does.""",
        AUTHORIZER_KEYS,
        OF_BROKERS,
    ),
    Section(
        "Broker keys that are refused",
        "Any value but the default ends the start, with one line that names the key.",
        _broker_keys_that(REFUSED),
        OF_BROKERS,
    ),
    Section(
        "Topic keys",
        """\
They may be changed at any time. A topic that does not set a key takes the value of the first broker key in
the last column that is set.""",
        TOPIC_KEYS,
        (*OF_OTHERS, BROKER_KEY),
    ),
    Section(
        "Group keys",
        """\
They may be changed at any time. A group that does not set a key takes the value of the broker's key, which is
`group.` and the key.""",
        GROUP_KEYS,
        OF_OTHERS,
    ),
    Section(
        "Keys of client metrics subscriptions",
        """\
They may be changed at any time. Clients push where `telemetry.receiver.enable` is set; without it a broker
does not tell them that they may, as Apache Kafka without a plug-in that receives metrics.""",
        CLIENT_METRICS_KEYS,
        OF_OTHERS,
    ),
    Section(
        "Broker keys that make no difference",
        "They are accepted, checked, kept and shown.",
        _broker_keys_that(UNHEEDED),
        OF_BROKERS,
    ),
    Section(
        "Internal broker keys",
        "For the tests of Apache Kafka; DescribeConfigs shows those that are set.",
        tuple(key for key in BROKER_KEYS if key.internal),
        (*OF_BROKERS[:-1], PURPOSE_AND_HANDLING),
    ),
)


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *map(str, SECTIONS)])


def _table(keys: Iterable[Key], columns: tuple[Column, ...]) -> str:
    rows = [[column.header for column in columns], ["---"] * len(columns)]
    rows += [[column.cell(key).replace("|", "\\|") for column in columns] for key in keys]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
