"""Applies the quotas of the newest metadata: those of clients, and those of addresses.

An address may be given as a host name, which is looked up in the background with each change: its quota is
in force after the first time. A name that no longer resolves has no quota, and is logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from ipaddress import ip_address

from pykafka_broker.cluster.image import ClusterImage, QuotaEntity
from pykafka_broker.controller.core.client_quotas import CONNECTION_CREATION_RATE, IP
from pykafka_broker.network.host_names import UNKNOWN_HOST, address_of
from pykafka_broker.quotas.client_quotas import ClientQuotas
from pykafka_broker.quotas.connection_rates import AddressRates

logger = logging.getLogger("kafka.server.ClientQuotas")


class QuotaFollower:
    """Follows the client quotas of the metadata. Event loop only."""

    def __init__(self, clients: ClientQuotas, addresses: AddressRates) -> None:
        self._clients = clients
        self._addresses = addresses
        self._quotas: Mapping[QuotaEntity, Mapping[str, float]] = {}
        #: The addresses of the hosts, as they were looked up last.
        self._found: Mapping[str, str] = {}
        self._looking_up: asyncio.Task[None] | None = None

    def published(self, _old: ClusterImage, new: ClusterImage) -> None:
        """`new` is the newest committed metadata."""
        if new.client_quotas is self._quotas:
            return
        self._quotas = new.client_quotas
        self._clients.apply(new.client_quotas)
        self.stop()
        limits: dict[str | None, float] = {}
        hosts: dict[str, float] = {}
        for host, limit in _limits_of_addresses(new.client_quotas):
            if host is None:
                limits[None] = limit
                continue
            try:
                address = ip_address(host.strip("[]"))
            except ValueError:
                hosts[host] = limit
            else:
                limits[str(getattr(address, "ipv4_mapped", None) or address)] = limit
        self._addresses.apply({**limits, **_by_address(hosts, self._found)})
        if hosts:
            self._looking_up = asyncio.get_running_loop().create_task(self._look_up(hosts, limits))

    def stop(self) -> None:
        """Stop looking up hosts."""
        if self._looking_up is not None:
            self._looking_up.cancel()
            self._looking_up = None

    async def _look_up(self, hosts: Mapping[str, float], limits: Mapping[str | None, float]) -> None:
        found = {}
        for host in hosts:
            try:
                found[host] = await address_of(host)
            except UNKNOWN_HOST:
                logger.warning("The quota of the unknown host %s is not in force", host)
        self._found = found
        self._addresses.apply({**limits, **_by_address(hosts, found)})


def _by_address(hosts: Mapping[str, float], found: Mapping[str, str]) -> dict[str | None, float]:
    """The limits of the hosts whose addresses are known."""
    return {found[host]: limit for host, limit in hosts.items() if host in found}


def _limits_of_addresses(
    quotas: Mapping[QuotaEntity, Mapping[str, float]],
) -> list[tuple[str | None, float]]:
    found = []
    for entity, values in quotas.items():
        names = dict(entity)
        if IP in names and CONNECTION_CREATION_RATE in values:
            found.append((names[IP], values[CONNECTION_CREATION_RATE]))
    return found
