"""What every core and its shell share: steps, shards, versioned maps, clocks and timers."""
