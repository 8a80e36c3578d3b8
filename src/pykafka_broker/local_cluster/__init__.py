"""Clusters on this machine: their folders and nodes, in any process; `Cluster`, which runs them in this one.

`pykafka-broker cluster` runs a process for each node of the same folders.

layout.py        how many nodes with which roles, their ports, the keys of each: pure
folder.py        the folder of a cluster: makes it, formats its nodes, tells what is in it
free_ports.py    ports for nodes that find them again
held_ports.py    ports stay a cluster's while no node listens there
waiting.py       waits for what nodes come to know
nodes.py         the nodes that run in this process, and what they know
cluster.py       Cluster (public)
"""
