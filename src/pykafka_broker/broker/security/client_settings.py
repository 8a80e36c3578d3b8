"""The settings with which a client connects, for each kind of client. Pure, except for the TLS context."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pykafka_broker.config.sasl_listeners import LOGIN_MODULES
from pykafka_broker.sasl.jaas import quoted


@dataclass(frozen=True)
class ClientSettings:
    """The settings of one user's clients. They hold the password, so `repr` does not show it."""

    bootstrap_servers: str
    #: Kafka's security protocol of the listener, such as `SASL_SSL`.
    security_protocol: str
    #: None: the broker does not ask for a user.
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    mechanism: str | None = None
    #: The PEM certificate of the authority that signed the broker's certificate; None without TLS.
    authority: str | None = field(default=None, repr=False)

    @property
    def python(self) -> dict[str, Any]:
        """The keyword arguments of kafka-python and aiokafka."""
        settings: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers,
            "security_protocol": self.security_protocol,
        }
        if self.user is not None:
            settings |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        if self.authority is not None:
            import ssl

            settings["ssl_context"] = ssl.create_default_context(cadata=self.authority)
        return settings

    @property
    def confluent(self) -> dict[str, str]:
        """The properties of confluent-kafka, and of other clients based on librdkafka."""
        settings = {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": self.security_protocol,
        }
        if self.user is not None:
            settings |= {
                "sasl.mechanism": self.mechanism or "",
                "sasl.username": self.user,
                "sasl.password": self.password or "",
            }
        if self.authority is not None:
            settings["ssl.ca.pem"] = self.authority
        return settings

    @property
    def java(self) -> dict[str, str]:
        """The properties of Kafka's own clients, each on one line. Spark needs the prefix `kafka.`."""
        settings = {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": self.security_protocol,
        }
        if self.user is not None and self.mechanism is not None:
            module = LOGIN_MODULES[self.mechanism]
            login = f"username={quoted(self.user)} password={quoted(self.password or '')}"
            settings |= {
                "sasl.mechanism": self.mechanism,
                "sasl.jaas.config": f"{module} required {login};",
            }
        if self.authority is not None:
            settings |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": " ".join(self.authority.split()),
            }
        return settings
