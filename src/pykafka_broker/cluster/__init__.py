"""Cluster metadata, pure: the image records make, and the controller that decides on them."""
