"""Tables of Delta Lake and Iceberg: found, created, and written with each batch exactly once."""
