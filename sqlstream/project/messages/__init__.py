"""The messages of Kafka sources: how their keys and values become columns."""
