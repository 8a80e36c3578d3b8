"""Group, transaction and share coordinators: pure cores."""
