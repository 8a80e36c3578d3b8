"""What is in a topic, from its decoded batches, in memory that does not grow with its records. Pure.

results.py    the profile: what is told of a topic
topic.py      the state of a topic, to which batches are added, and which others are merged into
partition.py  counts and times of one partition
murmur3.py    hashes of many keys at once
distinct.py   how many keys there are (HyperLogLog)
frequent.py   the most frequent keys and names of headers (space-saving)
sizes.py      quantiles of sizes
content.py    a guess at the format of keys and values, from a sample

Left out: control batches are counted, not read; what keys and values mean.
"""
