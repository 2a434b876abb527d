"""Jinja templates to SQL, sandboxed and bounded, with a map back to the lines of the model."""
