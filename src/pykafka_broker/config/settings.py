"""`BrokerConfig`: one broker's configuration, typed and checked, as one immutable value.

`config["num.partitions"]` is a dictionary look-up of an already typed value; mypy knows the type
(`typed_values.py`). The constructor takes the strings of a properties file or other sources (`sources.py`).
It refuses the values that Apache Kafka 4.3 refuses, with the same messages, and also values that this broker
cannot honour and that would be dangerous to ignore. Dynamic changes make a new value (`with_dynamic`, see
`dynamic.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pykafka_broker.authorization.rules import StandardRules
from pykafka_broker.config.authorizer import ALLOW_EVERYONE, SUPER_USERS, authorizer_rules
from pykafka_broker.config.broker import BROKER, BROKER_KEYS, DYNAMIC_ONLY_KEYS, OWN_KEYS, SYNONYMS
from pykafka_broker.config.group import ASSIGNOR_CLASSES, assignor_name
from pykafka_broker.config.groups import broker_keys
from pykafka_broker.config.keys import (
    CLASS,
    REFUSED,
    REQUIRED,
    UNHEEDED,
    ConfigError,
    Key,
    Value,
    parse_voters,
)
from pykafka_broker.config.listeners import (
    PROTOCOL_MAP,
    Endpoint,
    parse_endpoints,
    parse_http_listeners,
    parse_map,
    security_protocol_map,
)
from pykafka_broker.config.typed_values import NumberKey, TypedValues

LISTENER_PREFIX = "listener.name."

_DEFAULTS: dict[str, Any] = {key.name: key.default for key in (*BROKER_KEYS, *OWN_KEYS, *DYNAMIC_ONLY_KEYS)}
_DYNAMIC_ONLY: dict[str, Key] = {key.name: key for key in DYNAMIC_ONLY_KEYS}
#: The values of `replica.selector.class`: a replica in the rack of the consumer, or always the leader.
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
REPLICA_SELECTORS = (RACK_AWARE_SELECTOR, "org.apache.kafka.common.replica.LeaderSelector")
#: Key -> Java classes that behave as this broker does anyway.
_OWN_CLASSES: Mapping[str, frozenset[str]] = {
    "sasl.login.class": frozenset(
        {
            "org.apache.kafka.common.security.authenticator.DefaultLogin",
            "org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerRefreshingLogin",
        }
    ),
    "sasl.client.callback.handler.class": frozenset(
        {
            "org.apache.kafka.common.security.authenticator.SaslClientCallbackHandler",
            "org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslClientCallbackHandler",
        }
    ),
}
_MIB = 1024 * 1024


class BrokerConfig(TypedValues):
    """The effective configuration of one broker.

    Attributes:
        originals: the configured values as written: file, environment, overrides and start-up defaults.
        values: every key's typed value.
        cluster_id: the cluster id of a new data directory; None leaves the choice to formatting.
        standalone: no quorum is configured: the only controller is the one in this process.
        initial_controllers: the first voters of a new quorum, in the form of `format --initial-controllers`.
        assumed: the keys of `originals` that are start-up defaults, configured by no source.
    """

    __slots__ = (
        "advertised_controller_listeners",
        "advertised_listeners",
        "assumed",
        "cluster_id",
        "console_listeners",
        "controller_listener_names",
        "controller_listeners",
        "initial_controllers",
        "inter_broker_listener_name",
        "listeners",
        "metrics_listeners",
        "node_id",
        "originals",
        "process_roles",
        "standalone",
        "voters",
    )

    def __init__(
        self,
        originals: Mapping[str, str],
        *,
        cluster_id: str | None = None,
        standalone: bool = False,
        initial_controllers: str | None = None,
        assumed: Iterable[str] = (),
    ) -> None:
        """Read and check `originals`.

        Raises:
            ConfigError: values contradict each other, are out of bounds, or cannot be served.
        """
        self.originals: dict[str, str] = _with_both_ids(originals)
        self.cluster_id = cluster_id
        self.standalone = standalone
        self.initial_controllers = initial_controllers
        self.assumed = frozenset(assumed)
        super().__init__(_typed(self.originals))
        self._derive()
        check_refused(self.values)
        self._check_roles_and_listeners()
        self.check_served()
        check_bounds(self)
        authorizer_rules(self, self.originals)

    # -- access ----------------------------------------------------------------------------------------------

    def get(self, name: str, default: Value = None) -> Value:
        """The typed value of any name; `default` if there is no such key or it is unset."""
        value: Value = self.values.get(name)
        return default if value is None else value

    def for_listener(self, listener: str, name: NumberKey) -> int:
        """The value of `listener.name.<listener>.<name>`; the broker's if it has none."""
        own: int | None = self.values.get(f"{LISTENER_PREFIX}{listener.lower()}.{name}")
        return self[name] if own is None else own

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The log directories."""
        dirs = self["log.dirs"]
        return self["log.dir"] if dirs is None else dirs

    @property
    def cordoned_log_dirs(self) -> tuple[str, ...]:
        """The log directories that get no new partitions (KIP-1066)."""
        named = self["cordoned.log.dirs"]
        return self.log_dirs if "*" in named else named

    @property
    def metadata_log_dir(self) -> str:
        """The directory of the metadata log."""
        return self["metadata.log.dir"] or self.log_dirs[0]

    @property
    def broker_listeners(self) -> tuple[Endpoint, ...]:
        """The listeners for clients and other brokers."""
        return tuple(e for e in self.listeners if e.name not in self.controller_listener_names)

    @property
    def early_start_listeners(self) -> frozenset[str]:
        """`early.start.listeners`: the listeners that open before the authorizer has read its ACLs."""
        named = self["early.start.listeners"]
        return frozenset(self.controller_listener_names if named is None else named)

    @property
    def connections_per_ip_overrides(self) -> dict[str, int]:
        """`max.connections.per.ip.overrides`, by host as written: an address or a name."""
        return _connection_overrides(self["max.connections.per.ip.overrides"])

    @property
    def unknown(self) -> list[str]:
        """Configured keys that Kafka does not know; kept, as a plug-in may know them."""
        known = () if self.authorizer is None else (SUPER_USERS, ALLOW_EVERYONE)
        known_beginnings = tuple(
            f"config.providers.{name}.{key}"
            for name in self.values["config.providers"]
            for key in ("class", "param.")
        )
        return sorted(
            name
            for name in self.originals
            if base_key(name) is None and name not in known and not name.startswith(known_beginnings)
        )

    @property
    def authorizer(self) -> StandardRules | None:
        """The rules of the authorizer; None without one: then every user may do everything."""
        return authorizer_rules(self, self.originals)

    @property
    def unheeded(self) -> list[str]:
        """Configured keys without effect in this broker whose values differ from the default."""
        return sorted(
            name
            for name in self.originals.keys() - self.assumed
            if (key := base_key(name)) is not None
            and key.handling == UNHEEDED
            and self.values[name] != key.default
        )

    def with_static(self, overrides: Mapping[str, str]) -> BrokerConfig:
        """The static configuration with these overrides on top.

        Raises:
            ConfigError: as in the constructor.
        """
        return BrokerConfig(
            {**self.originals, **overrides},
            cluster_id=self.cluster_id,
            standalone=self.standalone,
            initial_controllers=self.initial_controllers,
            assumed=self.assumed - overrides.keys(),
        )

    def with_dynamic(self, overrides: Mapping[str, str]) -> BrokerConfig:
        """Lay dynamic values on top of this configuration.

        Raises:
            ConfigError: an override is malformed, or contradicts the rest.
        """
        new = object.__new__(BrokerConfig)
        new.originals = self.originals
        new.cluster_id = self.cluster_id
        new.standalone = self.standalone
        new.initial_controllers = self.initial_controllers
        new.assumed = self.assumed
        typed = _typed_overrides(overrides)
        # Of synonyms only the dynamically set key counts.
        replaced = {other for group in SYNONYMS if any(name in typed for name in group) for other in group}
        new.values = {**self.values, **{name: BROKER[name].default for name in replaced}, **typed}
        new._derive()
        # Controller listeners come from the static configuration only, as in Kafka.
        new.controller_listeners = self.controller_listeners
        new.advertised_controller_listeners = self.advertised_controller_listeners
        check_bounds(new)
        return new

    # -- reading ---------------------------------------------------------------------------------------------

    def _derive(self) -> None:
        """Derive the attributes that depend on several keys, or on a key that needs parsing."""
        self.node_id = self["node.id"]
        self.process_roles = frozenset(self["process.roles"])
        self.voters = parse_voters(self["controller.quorum.voters"])
        protocols = security_protocol_map(self, is_explicit=PROTOCOL_MAP in self.originals)
        self.controller_listener_names = self["controller.listener.names"]
        self.listeners = parse_endpoints(self["listeners"], protocols, ports_must_differ=True)
        advertised = self["advertised.listeners"]
        told = (
            self.listeners
            if advertised is None
            else parse_endpoints(advertised, protocols, ports_must_differ=False)
        )
        controllers = self.controller_listener_names
        self.advertised_listeners = tuple(e for e in told if e.name not in controllers)
        self.advertised_controller_listeners = tuple(e for e in told if e.name in controllers)
        self.controller_listeners = tuple(e for e in self.listeners if e.name in controllers)
        self.inter_broker_listener_name = self._inter_broker_listener(protocols)
        self.metrics_listeners = parse_http_listeners("metrics.listeners", self["metrics.listeners"])
        self.console_listeners = parse_http_listeners("console.listeners", self["console.listeners"])

    def _inter_broker_listener(self, protocols: dict[str, str]) -> str:
        name = self["inter.broker.listener.name"]
        if name is None:
            return self["security.inter.broker.protocol"]
        if "security.inter.broker.protocol" in self.originals:
            raise ConfigError(
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
            )
        if name.upper() not in protocols:
            raise ConfigError(
                f"Listener with name {name.upper()} defined in inter.broker.listener.name not found in "
                "listener.security.protocol.map."
            )
        return name.upper()

    # -- checks ----------------------------------------------------------------------------------------------

    def _check_roles_and_listeners(self) -> None:
        """Make Kafka's checks of the start and of a change of listeners, in Kafka's order."""
        if self["broker.id"] != self.node_id:
            raise ConfigError("You must set `node.id` to the same value as `broker.id`.")
        if not self.standalone:
            self._check_quorum()
        if "broker" in self.process_roles:
            self._check_broker_listeners()
        for name in self["early.start.listeners"] or ():
            if name not in {*(endpoint.name for endpoint in self.listeners), *self.controller_listener_names}:
                raise ConfigError(
                    f"early.start.listeners contains listener {name}, but this is not contained in listeners "
                    "or controller.listener.names"
                )
        for endpoint in self.advertised_listeners:
            if endpoint.host == "0.0.0.0":
                raise ConfigError(
                    "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. "
                    "Use a routable IP address."
                )

    def _check_quorum(self) -> None:
        if not self.voters and not self["controller.quorum.bootstrap.servers"]:
            raise ConfigError(
                "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of "
                "bootstrap controllers or controller.quorum.voters must contain a parseable set of "
                "controllers."
            )
        # Not `controller_listeners`, which never change dynamically.
        of_controllers = [e for e in self.listeners if e.name in self.controller_listener_names]
        voter_ids = [voter.node_id for voter in self.voters]
        shown = f"controller.quorum.voters=Set({', '.join(map(str, voter_ids))})"
        if "controller" not in self.process_roles:
            if self.node_id in voter_ids:
                raise ConfigError(
                    f"If process.roles contains just the 'broker' role, the node id {self.node_id} must not "
                    f"be included in the set of voters {shown}"
                )
            if of_controllers:
                raise ConfigError(
                    "controller.listener.names must not contain a value appearing in the 'listeners' "
                    "configuration when running KRaft with just the broker role"
                )
            if self["controller.quorum.auto.join.enable"]:
                raise ConfigError(
                    "controller.quorum.auto.join.enable is only supported when process.roles contains the "
                    "'controller' role."
                )
            return
        if "broker" not in self.process_roles and len(of_controllers) != len(self.listeners):
            raise ConfigError(
                "The listeners config must only contain KRaft controller listeners from "
                "controller.listener.names when process.roles=controller"
            )
        if voter_ids and self.node_id not in voter_ids:
            raise ConfigError(
                f"If process.roles contains the 'controller' role, the node id {self.node_id} must be "
                f"included in the set of voters {shown}"
            )
        if not of_controllers:
            raise ConfigError(
                "controller.listener.names must contain at least one value appearing in the 'listeners' "
                "configuration when running the KRaft controller role"
            )
        if len(of_controllers) != len(self.controller_listener_names):
            raise ConfigError(
                "controller.listener.names must only contain values appearing in the 'listeners' "
                "configuration when running the KRaft controller role"
            )

    def _check_broker_listeners(self) -> None:
        names = [endpoint.name for endpoint in self.listeners]
        told = [endpoint.name for endpoint in self.advertised_listeners]
        if not told:
            raise ConfigError(
                "There must be at least one broker advertised listener. "
                "Perhaps all listeners appear in controller.listener.names?"
            )
        if self.inter_broker_listener_name not in told:
            raise ConfigError(
                "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
                f"The valid options based on currently configured listeners are {','.join(told)}"
            )
        if not set(told) <= set(names):
            raise ConfigError(
                "advertised.listeners listener names must be equal to or a subset of the ones defined in "
                f"listeners. Found {','.join(told)}. The valid options based on the current configuration "
                f"are {','.join(names)}"
            )

    def check_served(self) -> None:
        """Refuse values that Kafka would accept, but that this broker cannot serve.

        Raises:
            ConfigError: there is one.
        """
        self._check_tls()
        self._check_sasl()
        for name in self["group.consumer.assignors"]:
            if assignor_name(name) not in ASSIGNOR_CLASSES.values():
                raise ConfigError(
                    f"group.consumer.assignors names {name}, and assignors of one's own are not served: "
                    f"leave some of {', '.join(sorted(ASSIGNOR_CLASSES.values()))}"
                )

    def protocol_of(self, listener: str) -> str:
        """The security protocol of a listener, of this node or of other nodes; empty if unknown."""
        is_explicit = PROTOCOL_MAP in self.originals
        return security_protocol_map(self, is_explicit=is_explicit).get(listener.upper(), "")

    def check_change(self, current: BrokerConfig) -> None:
        """Check that a broker running with `current` may change to this configuration.

        Raises:
            ConfigError: the next start would fail, or a listener would change its identity or protocol.
        """
        self._check_roles_and_listeners()
        protocols = {endpoint.name: endpoint.security_protocol for endpoint in current.listeners}
        for name, _, _, protocol in self.listeners:
            if protocols.get(name, protocol) != protocol:
                raise ConfigError(
                    f"Security protocol cannot be updated for existing listener ListenerName({name})"
                )
        check_refused(self.values)
        self.check_served()
        if any(endpoint.security_protocol.endswith("SSL") for endpoint in self.listeners):
            from pykafka_broker.config.tls_listeners import check_tls_change

            between_brokers = None if self.standalone else self.inter_broker_listener_name
            check_tls_change(current, self, self.listeners, between_brokers)

    def _check_tls(self) -> None:
        for endpoint in self.listeners:
            if endpoint.security_protocol.endswith("SSL"):
                from pykafka_broker.config.tls_listeners import principal_mapping, tls_settings

                tls_settings(self, endpoint.name, endpoint.security_protocol)
                principal_mapping(self, endpoint.name)

    def _check_sasl(self) -> None:
        between_nodes = {
            self.inter_broker_listener_name: "sasl.mechanism.inter.broker.protocol",
            **dict.fromkeys(self.controller_listener_names[:1], "sasl.mechanism.controller.protocol"),
        }
        asking = [
            name
            for name in between_nodes
            if not self.standalone and self.protocol_of(name).startswith("SASL_")
        ]
        if not asking and not any(e.security_protocol.startswith("SASL_") for e in self.listeners):
            return
        from pykafka_broker.config.sasl_listeners import check_sasl, node_login

        check_sasl(self, self.listeners, self.inter_broker_listener_name)
        for name in asking:
            node_login(self, name, self.values[between_nodes[name]])


def base_key(name: str) -> Key | None:
    """The row of `name`, which may have a prefix of a listener (and a SASL mechanism); None if unknown."""
    if key := BROKER.get(name) or _DYNAMIC_ONLY.get(name):
        return key
    if not name.startswith(LISTENER_PREFIX):
        return None
    rest = name[len(LISTENER_PREFIX) :].partition(".")[2]
    return BROKER.get(rest) or BROKER.get(rest.partition(".")[2])


def _with_both_ids(originals: Mapping[str, str]) -> dict[str, str]:
    """Set `node.id` and the older `broker.id` from each other."""
    result = dict(originals)
    if "node.id" in result:
        result.setdefault("broker.id", result["node.id"])
    elif "broker.id" in result:
        result["node.id"] = result["broker.id"]
    return result


def _typed(originals: Mapping[str, str]) -> dict[str, Any]:
    values = {**_DEFAULTS, **_typed_overrides(originals)}
    for name, value in values.items():
        if value is REQUIRED:
            raise ConfigError(f'Missing required configuration "{name}" which has no default value.')
    return values


def _typed_overrides(texts: Mapping[str, str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, text in texts.items():
        key = base_key(name)
        result[name] = text if key is None else key.parse(text)
    return result


def check_refused(values: Mapping[str, Any]) -> None:
    """Refuse values that this broker does not support and that would be unsafe to ignore.

    Raises:
        ConfigError: there is one.
    """
    of_listeners = [name for name in values if name.startswith(LISTENER_PREFIX)]
    for name in (*BROKER, *of_listeners):
        key = base_key(name)
        if key is not None and _is_refused(key, values[name]):
            raise ConfigError(
                f"{name} is set, but this broker does not support it, and ignoring it would be unsafe "
                f"({key.documentation.rstrip('.')}). Remove it only if you can do without it."
            )


def check_class(key: Key, text: str) -> None:
    """Refuse classes that are not Kafka's, as a Kafka broker that cannot load them does.

    Raises:
        ConfigError: with Kafka's message.
    """
    if key.type is CLASS and text.strip() and not text.strip().startswith("org.apache.kafka."):
        raise ConfigError(
            f"Invalid value {text} for configuration {key.name}: Class {text} could not be found."
        )


def _is_refused(key: Key, value: Any) -> bool:
    return key.handling == REFUSED and value not in (key.default, "", *_OWN_CLASSES.get(key.name, ()))


def check_bounds(values: TypedValues) -> None:
    """Check the relations between values, in Kafka's order and with its messages.

    Raises:
        ConfigError: a relation does not hold.
    """
    for holds, reason in _bounds(values):
        if not holds:
            raise ConfigError(reason)


def _bounds(v: TypedValues) -> list[tuple[bool, str]]:
    retention, minutes = v["log.retention.ms"], v["log.retention.minutes"]
    if retention is None:
        retention = v["log.retention.hours"] if minutes is None else minutes
    overrides = _connection_overrides(v["max.connections.per.ip.overrides"])
    bad_addresses = [address for address in overrides if " " in address or not address]
    idle, delay = v["connections.max.idle.ms"], v["connection.failed.authentication.delay.ms"]
    dirs = v["log.dir"] if v["log.dirs"] is None else v["log.dirs"]
    cordoned = [d for d in v["cordoned.log.dirs"] if d != "*" and d not in dirs]
    heartbeat, session = v["broker.heartbeat.interval.ms"], v["broker.session.timeout.ms"]
    return [
        (
            "classic" in v["group.coordinator.rebalance.protocols"],
            "Disabling the 'classic' protocol is not supported.",
        ),
        (v["log.roll.ms"] is None or v["log.roll.ms"] >= 1, "log.roll.ms must be greater than or equal to 1"),
        (
            v["log.roll.jitter.ms"] is None or v["log.roll.jitter.ms"] >= 0,
            "log.roll.jitter.ms must be greater than or equal to 0",
        ),
        (retention != 0, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        (bool(dirs), "At least one log directory must be defined via log.dirs or log.dir."),
        (
            not cordoned,
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
            f"Missing entries : {', '.join(cordoned)}",
        ),
        (
            v["log.cleaner.dedupe.buffer.size"] // max(1, v["log.cleaner.threads"]) > _MIB,
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        (
            v["replica.fetch.wait.max.ms"] <= v["replica.socket.timeout.ms"],
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent "
            "unnecessary socket timeouts",
        ),
        (
            v["replica.fetch.wait.max.ms"] <= v["replica.lag.time.max.ms"],
            "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to "
            "prevent frequent changes in ISR",
        ),
        (
            v["replica.selector.class"] in (None, "", *REPLICA_SELECTORS),
            f"replica.selector.class must be one of {', '.join(REPLICA_SELECTORS)}",
        ),
        (
            heartbeat <= session // 2,
            f"broker.heartbeat.interval.ms ({heartbeat} ms) must be less than or equal to half of the "
            f"broker.session.timeout.ms ({session} ms).",
        ),
        (
            not 0 < v["queued.max.request.bytes"] < v["socket.request.max.bytes"],
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        ),
        (
            v["max.connections.per.ip"] > 0 or bool(overrides),
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is "
            "set.",
        ),
        (
            not bad_addresses,
            f"max.connections.per.ip.overrides contains invalid addresses : {','.join(bad_addresses)}",
        ),
        (
            idle < 0 or delay < idle,
            f"connection.failed.authentication.delay.ms={delay} should always be less than "
            f"connections.max.idle.ms={idle} to prevent failed authentication responses from timing out",
        ),
        *_group_bounds(v.values),
    ]


def _group_bounds(v: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """Defaults are within their bounds, and heartbeat intervals are shorter than session timeouts."""
    checks = []
    for what in ("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms"):
        name, low, high = broker_keys(f"share.{what}")
        checks += [
            (v[high] >= v[name], f"{high} must be greater than or equal to {name}"),
            (v[name] >= v[low], f"{name} must be greater than or equal to {low}"),
        ]
    sessions, size = "group.share.max.share.sessions", "group.share.max.size"
    checks.append((v[sessions] >= v[size], f"{sessions} must be greater than or equal to {size}"))
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        checks += [
            *_between(v, heartbeat),
            *_between(v, session),
            (v[heartbeat] < v[session], f"{heartbeat} must be less than {session}"),
            *_between(v, f"group.{kind}.assignment.interval.ms"),
        ]
    standbys, _, most = broker_keys("streams.num.standby.replicas")
    return [*checks, (v[standbys] <= v[most], f"{standbys} must be less than or equal to {most}")]


def _between(v: Mapping[str, Any], name: str) -> list[tuple[bool, str]]:
    _, low, high = broker_keys(name.removeprefix("group."))
    return [
        (v[high] >= v[low], f"{high} must be greater than or equal to {low}"),
        (v[name] >= v[low], f"{name} must be greater than or equal to {low}"),
        (v[name] <= v[high], f"{name} must be less than or equal to {high}"),
    ]


def _connection_overrides(text: str) -> dict[str, int]:
    name = "max.connections.per.ip.overrides"
    result = {}
    for address, count in parse_map(name, text).items():
        if not count.isdecimal():
            raise ConfigError(f"Error parsing configuration property '{name}': {count} is not a number")
        result[address] = int(count)
    return result
