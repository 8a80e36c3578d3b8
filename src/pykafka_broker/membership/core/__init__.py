"""What a broker tells the controller about its life, and when, pure."""
