"""ApiVersions (API key 18): which APIs and features this node serves.

v1 throttle time, v3 flexible with the client's software name and features, v4 features whose minimum is 0
(KAFKA-17011; older versions must not see them). The response header is v0 at every version. The connection
itself answers a version that is not served with `unsupported_version`: the v0 body, UNSUPPORTED_VERSION and
this API's own row (KIP-511). The connection remembers the software, unless its names are very long.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.ports.connection import Software
from pykafka_broker.cluster.features import KRAFT_VERSION
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext
    from pykafka_broker.apis.ports.connection import ServedApi

#: A longer name or version is not remembered; it may have 32 KiB.
MAX_REMEMBERED_CHARACTERS = 256

SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handles(
    ApiVersionsRequest,
    versions="0-4",
    needs=[],
    error_response=lambda request, error: ApiVersionsResponse(error_code=int(error.code), api_keys=[]),
)
def api_versions(request: ApiVersionsRequest, ctx: AdministrationContext) -> ApiVersionsResponse:
    """List the served APIs and features, after a check of the client's name."""
    if ctx.version >= 3:
        if not _is_valid(request):
            return ApiVersionsResponse(
                error_code=int(ErrorCode.INVALID_REQUEST), api_keys=[], throttle_time_ms=0
            )
        software = Software(request.client_software_name, request.client_software_version)
        if max(map(len, software)) <= MAX_REMEMBERED_CHARACTERS:
            ctx.connection.software = software
    image = ctx.node.metadata.image
    return ApiVersionsResponse(
        error_code=0,
        api_keys=[_row(api) for api in ctx.connection.listed_apis],
        throttle_time_ms=0,
        supported_features=[
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in ctx.node.metadata.supported_features.items()
            if lowest > 0 or ctx.version >= 4
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in {**image.features, KRAFT_VERSION: ctx.node.metadata.kraft_version}.items()
            if level > 0
        ],
    )


def unsupported_version() -> ApiVersionsResponse:
    """The answer to an ApiVersions version that is not served; to be encoded as v0."""
    return ApiVersionsResponse(
        error_code=int(ErrorCode.UNSUPPORTED_VERSION), api_keys=[_row(api_versions)], throttle_time_ms=0
    )


def _row(api: ServedApi) -> ApiVersion:
    return ApiVersion(api_key=api.key, min_version=api.advertised_min_version, max_version=api.max_version)


def _is_valid(request: ApiVersionsRequest) -> bool:
    return bool(
        SOFTWARE_NAME.fullmatch(request.client_software_name)
        and SOFTWARE_NAME.fullmatch(request.client_software_version)
    )
