"""Sinks: what they take, and how rows get into them."""
