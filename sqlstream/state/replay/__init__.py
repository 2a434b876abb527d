"""A past batch of a query: what it read, and whether Spark can run it again."""
