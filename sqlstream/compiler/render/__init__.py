"""Jinja templates to SQL: sandboxed, bounded, and with a map back to the lines of the model."""
