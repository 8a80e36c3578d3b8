"""What needs no files, and no `ssl`."""
