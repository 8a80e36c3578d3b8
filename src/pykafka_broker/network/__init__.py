"""Clients on sockets: from a listening address to a request that its handler answers, and back.

    endpoint.py            the configuration of a listener; addresses.py, host_names.py: hosts looked up
    listeners.py           all listeners: bound, advertised, stopped
    listening.py           one listener and its sockets
    connection_factory.py  connections as listeners see them; kafka_connections.py: those that speak Kafka
    accepting.py           letting clients in as far as limits and rates allow
    transports.py          bytes between socket and connection
    identity.py            who a peer is, as its connection knows it; sasl_authentication.py,
                           certificate_authentication.py: who says so
    connection.py          one client: frames in, answers out, in order; peer.py: whose it is
    holds.py               why its next request does not start yet
    dispatch.py            from API key and version to decoder, handler and encoder
    answers.py             its answers, in the order of its requests; sending.py: those that are read from
                           their files while they are sent
    request_times.py       how long requests take, stage by stage; measured_answers.py: where metrics are on
                           or requests are watched; slow_requests.py: the log of those that take long
    connection_lines.py    the log of connections
    purgatory.py           parked fetches, and other requests that wait for a log to move
    limits.py              the limits of one connection; patience.py: its deadlines, deadlines.py: their check
    unanswered.py          requests that wait for too long: what for, and the line about them
    memory_account.py, memory.py  memory: the use of one connection, and the bounds of all together
    shared.py              the shared state of all connections; counters.py, faults.py
    sweeping.py            looks at every connection now and then

Where additions belong:

* TLS: a row in broker/security/protocols.py, with a transport here that has the listener's SSL
  context. A client's certificate reaches the authentication, which begins when the handshake is over.
* SASL: a row there, with an authentication here; sasl_authentication.py says in which order it works.
* A web console: a `ConnectionFactory` (connection_factory.py), which `Listeners.add` gets as a
  `ListenerService`, together with a transport. For each client that is let in it makes an asyncio protocol
  that reads the HTTP request, and an `OpenConnection` through which limits, the sweep and the stop end it;
  one class can be both, as in metrics/http_connection.py.
"""
