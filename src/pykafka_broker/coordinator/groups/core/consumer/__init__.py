"""Groups whose partitions the coordinator assigns (KIP-848), pure."""
