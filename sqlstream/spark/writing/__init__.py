"""Check sinks, and write rows to them."""
