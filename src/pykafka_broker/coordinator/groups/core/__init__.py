"""The group coordinator's pure core: membership, rebalances and committed offsets."""
