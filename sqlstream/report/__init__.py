"""Plain values to terminal text and JSON."""
