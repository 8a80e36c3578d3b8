"""What the operating system gives: descriptors, processes, signals, event loops."""
