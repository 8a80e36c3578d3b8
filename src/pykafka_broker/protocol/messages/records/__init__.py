"""Messages that are kept in logs: of the coordinators, of the cluster metadata, and control records."""
