"""SASL without I/O: what a server and a client say to each other, and the JAAS strings that configure them.

`exchange` keeps the order of an exchange, and what the peer is told. `plain`, `scram_server` and
`oauth_bearer` are mechanisms as a server runs them: `respond(token) -> token`, and at the end the
`account`. `scram_client` and `oauth_bearer_client` are the other side. `oauth_login` says where a client's
bearer tokens come from, `token_life` when the next is needed, and `unsecured_login` makes some.
`delegation_tokens` makes the passwords of tokens; `signed_tokens` and `unsecured_tokens` say which bearer
tokens are accepted. `jaas` reads `sasl.jaas.config`. Nonces, times and credentials are passed in.
"""
