"""Who may do what: the ACLs of a cluster, found by the resource and the principal that a request is about.

The rules are those of Apache Kafka's StandardAuthorizer. Nothing here reads or writes anything.
"""
