"""SASL without I/O: what a server and a client say to each other, and the JAAS strings that configure them.

`jaas` reads `sasl.jaas.config`. `plain` and `scram_server` are mechanisms as a server runs them:
`respond(token) -> token`, `complete`, and then the `account`. `scram_client` is the other side. Nonces and
credentials are passed in: nothing here rolls dice, reads a clock or asks anybody.
"""
