"""Who talks to a node and what they may do: security protocols of listeners, links to other nodes, ACLs."""
