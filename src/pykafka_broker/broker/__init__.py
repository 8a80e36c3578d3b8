"""The broker: what it is built of, its life, and its threads."""
