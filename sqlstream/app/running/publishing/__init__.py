"""Plain names of outputs in runs and commands: switched to the current version, and kept in step with it."""
