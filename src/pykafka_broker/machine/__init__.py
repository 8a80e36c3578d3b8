"""The tools of every core and its shell: steps, shards, versioned maps, clocks, timers, and the history."""
