"""Group and transaction coordinators: pure cores, and the shells that run them."""
