"""What the storage of a target contains: outputs, the files of queries, and what sources have left to read."""
