"""What a broker asks of the controller: to be a member, other ISRs, places for its replicas, producer ids."""
