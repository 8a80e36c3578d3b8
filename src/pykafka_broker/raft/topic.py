"""The topic of the metadata log."""

#: The topic id of the metadata log, the same in every cluster.
METADATA_TOPIC_ID = bytes(15) + b"\x01"
