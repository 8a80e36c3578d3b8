"""Groups whose members assign the partitions among themselves (the protocol before KIP-848), pure."""
