"""Metrics for Prometheus, and the health of a node, over HTTP.

    family.py          what a family of metrics is: name, type, labels, meaning, Kafka's MBean, how it is read
    node_parts.py      the parts of a node that families read
    families.py        all families, in the order of the page; process.py and the other files of families
    pushed.py          what clients have pushed
    rates.py, copies.py
                       what earlier scrapes have seen
    exposition.py      the page of all samples, made in slices
    health.py          why a node is not ready
    explanations.py    what a node has decided lately, and what its clients wait for
    http_request.py    what a client asks for; http_connection.py: one client, and what it is answered
    reference.py       the table of docs/metrics.md

Counts are integers in the state of the parts that know them; a scrape reads them. A new metric is a row of a
file of families, and if no part counts it yet, an integer in the part that knows it.
"""
