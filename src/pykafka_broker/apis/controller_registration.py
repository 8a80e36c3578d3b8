"""ControllerRegistration (API key 70): a controller of the quorum registers its addresses and supported
features with the active one (KIP-919).

v0 is the only version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.features import CONTROLLER_REGISTRATIONS_SINCE
from pykafka_broker.controller.wire import controller_registration as wire
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    ControllerRegistrationRequest,
    versions="0",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=wire.refused,
)
async def controller_registration(
    request: ControllerRegistrationRequest, ctx: ControllerContext
) -> ControllerRegistrationResponse:
    """The answer comes when the registration is committed."""
    if ctx.node.metadata.image.metadata_version < CONTROLLER_REGISTRATIONS_SINCE:
        text = "The current MetadataVersion is too old to support controller registrations."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
    return wire.response(await ctx.node.controller.ask(wire.read_request(request)))
