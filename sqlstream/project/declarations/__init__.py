"""The declarations of a project as values: one module for each kind."""
