"""The shell: sockets, parked requests, replicas, the controller's loop, and the broker that builds it all."""
