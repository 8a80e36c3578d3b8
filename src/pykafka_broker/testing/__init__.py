"""What tests of programs that use Kafka need: brokers to start, a clock to move, files that fail."""
