"""The TLS of a listener, and of nodes that connect to it: renewed when its keys or a file change."""

from __future__ import annotations

import logging
from collections.abc import Callable
from ssl import SSLContext

from pykafka_broker.config import BrokerConfig, ConfigError
from pykafka_broker.config.tls_listeners import may_change, tls_settings
from pykafka_broker.tls.contexts import TlsSettings
from pykafka_broker.tls.core.certificates import not_after_s
from pykafka_broker.tls.renewal import check_renewed
from pykafka_broker.tls.stores import certificates_of, read_key_store, stamp_of

logger = logging.getLogger("kafka.common.security.ssl.SslFactory")


class ListenerContext:
    """Calling it returns the context for the next connection.

    Each call checks whether the configuration or a file has changed: two file system calls, which take a few
    microseconds; a handshake takes a thousand. If new keys cannot be read, or are of another server
    (`tls/renewal.py`), the last context stays in force, and an error is logged.
    """

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        listener: str,
        security_protocol: str,
        make: Callable[[TlsSettings], SSLContext],
    ) -> None:
        """`make` is `server_context`, `node_context` or `client_context`.

        Raises:
            ConfigError: the first context cannot be made.
        """
        self._config = config
        self._listener = listener
        self._security_protocol = security_protocol
        self._make = make
        self._read_config = config()
        self._settings = self._settings_in(self._read_config)
        self._stamps = _stamps(self._settings)
        try:
            self._context = make(self._settings)
            self._keys = read_key_store(self._settings.key_store)
        except ValueError as error:
            raise ConfigError(f"Listener {listener} cannot serve TLS: {error}") from None

    def __call__(self) -> SSLContext:
        config = self._config()
        try:
            settings = self._settings
            if config is not self._read_config:
                self._read_config = config
                settings = self._settings_in(config)
            stamps = _stamps(settings)
            if settings != self._settings or stamps != self._stamps:
                # Noted even if the new context fails, so that not every connection tries it again.
                self._settings, self._stamps = settings, stamps
                context, keys = self._make(settings), read_key_store(settings.key_store)
                check_renewed(self._keys, keys, **may_change(config))
                self._context, self._keys = context, keys
                logger.info("Listener %s has new keys or other settings of TLS", self._listener)
        except ValueError as error:
            logger.error(
                "Listener %s keeps its settings of TLS, for the new ones cannot be had: %s",
                self._listener,
                error,
            )
        return self._context

    def not_after_s(self) -> int | None:
        """When the first of its certificates ends, in seconds since 1970; None if none says so."""
        self()
        try:
            return min(not_after_s(certificate) for key in self._keys for certificate in certificates_of(key))
        except ValueError:
            return None

    def _settings_in(self, config: BrokerConfig) -> TlsSettings:
        return tls_settings(config, self._listener, self._security_protocol)


def _stamps(settings: TlsSettings) -> tuple[tuple[int, ...], ...]:
    return stamp_of(settings.key_store), stamp_of(settings.trust_store)
