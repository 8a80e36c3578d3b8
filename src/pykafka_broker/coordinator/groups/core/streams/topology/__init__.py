"""What an application reads, keeps and needs created. `declared.py` is the topology that its members bring,
`partition_counts.py` decides how many partitions its internal topics are to have, and `configured.py` says
which tasks that makes, or what is missing.
"""
