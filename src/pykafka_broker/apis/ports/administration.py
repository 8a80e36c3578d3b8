"""The ports of handlers that serve listeners of both brokers and controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.authorizer import Authorizer
    from pykafka_broker.apis.ports.quotas import Quotas
    from pykafka_broker.cluster.image import ClusterImage
    from pykafka_broker.config import DynamicConfig
    from pykafka_broker.controller.channel import ClusterAdministration


class ClusterMetadata(Protocol):
    """Committed metadata and features, on listeners of any kind."""

    @property
    def node_id(self) -> int:
        """The id of this node."""
        ...

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        ...

    @property
    def supported_features(self) -> Mapping[str, tuple[int, int]]:
        """Feature name -> (lowest, highest) level this node supports."""
        ...

    @property
    def kraft_version(self) -> int:
        """0 if the voters of the metadata quorum are fixed by the configuration."""
        ...


class AdministrationPorts(Protocol):
    """What `NodePorts` and `ControllerPorts` have in common."""

    @property
    def configs(self) -> DynamicConfig: ...

    @property
    def metadata(self) -> ClusterMetadata: ...

    @property
    def controller(self) -> ClusterAdministration: ...

    @property
    def authorizer(self) -> Authorizer: ...

    @property
    def quotas(self) -> Quotas: ...
