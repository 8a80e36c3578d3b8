"""SASL without I/O: what a server and a client say to each other, and the JAAS strings that configure them.

`exchange` keeps the order of an exchange, and what the peer is told. `plain` and `scram_server` are
mechanisms as a server runs them: `respond(token) -> token`, and at the end the `account`. `scram_client` is
the other side. `jaas` reads `sasl.jaas.config`. Nonces, times and credentials are passed in.
"""
