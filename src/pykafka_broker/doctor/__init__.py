"""The checks that every doctor makes: they look at the cluster as a client sees it, and judge what they find
in sentences, each with its remedy. Judging is pure.

    findings.py   what a check says
    reach.py      who answers at the bootstrap address
    starting.py   the broker of this machine that is to serve there, and does not yet
    quorum.py     whether a controller leads the cluster, and what is known where none does
    brokers.py    whether the advertised addresses lead to the brokers
    topics.py     missing topics, partitions without leader, what can be written, open transactions
    refusals.py   a cluster that stops answering while it is asked

The command `doctor` adds groups and disks, `pykafka_broker.spark.doctor` what lies between Spark and Kafka.
"""
