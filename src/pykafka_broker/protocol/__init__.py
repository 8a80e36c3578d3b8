"""The wire, pure: messages, record batches, frames and errors. Knows bytes and nothing of brokers."""
