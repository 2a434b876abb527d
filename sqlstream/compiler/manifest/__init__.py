"""The manifest, and how two of them are compared."""
