"""The metadata log on every node, voter or not: its replica, the images made of it, and its snapshots."""
