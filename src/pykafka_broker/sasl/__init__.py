"""SASL without I/O: what a server and a client say to each other, and the JAAS strings that configure them.

`exchange` checks the order of an exchange, and makes its answers. `plain`, `scram_server` and
`oauth_bearer` are mechanisms as a server runs them: `respond(token) -> token`, and at the end the
`account`. `scram_client` and `oauth_bearer_client` are the client's side. `oauth_login` configures the source
of a client's bearer tokens, `token_life` when to fetch the next, `unsecured_login` makes unsigned ones.
`delegation_tokens` makes the passwords of delegation tokens; `signed_tokens` and `unsecured_tokens` check
bearer tokens. `jaas` parses `sasl.jaas.config`. Nonces, times and credentials are passed in.
"""
