"""What an application reads, keeps and needs created. `declared.py` is the topology that its members bring,
`partition_counts.py` decides the partition counts of its internal topics, and `configured.py` derives the
tasks, or what is missing.
"""
