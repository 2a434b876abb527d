"""What `run`, `build` and `retry` share: their shell, the queries they start, and the record of the last command."""
