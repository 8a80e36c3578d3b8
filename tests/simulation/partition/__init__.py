"""One replicated partition on simulated brokers, under the real core of the controller.

    replica_log.py  the log of a replica: records, leader epochs, high watermark, truncation
    broker.py       a broker that leads or follows the partition, over both cores of `replication/core`
    cluster.py      the controller, the brokers, their network, their faults, from one seed
    laws.py         what has to hold after every step
    planted.py      mistakes that the simulation has to find

A simulation of whole clusters can take `Broker` and `Laws` as they are: a broker talks through the messages
that it returns, and is told everything else.
"""
