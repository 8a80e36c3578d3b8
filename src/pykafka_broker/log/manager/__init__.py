"""All logs of one broker: their folders, moves and periodic work, and the threads that wait for disks."""
