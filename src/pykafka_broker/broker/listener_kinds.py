"""The kinds of listeners of a node: for each, what makes the connections of such a listener.

The place for a further kind. Listeners of controllers are a row with the APIs of `CONTROLLER_LISTENER`; a
metrics page and a web console are rows with connection factories of their own
(`network/connection_factory.py`). What an endpoint `serves` names its row; `settings.endpoints` reads the
endpoints from the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import BROKER_LISTENER
from pykafka_broker.apis.ports.authorizer import Authorizer
from pykafka_broker.apis.ports.quotas import Quotas
from pykafka_broker.network.connection_factory import ConnectionFactory
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.endpoint import ListenerEndpoint
from pykafka_broker.network.kafka_connections import KafkaConnections
from pykafka_broker.network.shared import Shared

#: Makes the connection factory of one listener.
ListenerKind = Callable[[ListenerEndpoint], ConnectionFactory]


def listener_kinds(shared: Shared, authorizer: Authorizer, quotas: Quotas) -> Mapping[str, ListenerKind]:
    """All kinds, by what their endpoints serve.

    Parts of the node are built after its listeners, and before the first connection: a kind that reads such a
    part is given a closure over it.

    Raises:
        NotImplementedError: a handler does not ask `authorizer` yet what it has to.
    """
    brokers = Dispatch(APIS, BROKER_LISTENER, authorizer, quotas)
    return {BROKER_LISTENER: partial(KafkaConnections, shared, brokers)}
