"""The last command of a project: its arguments, and what of it failed."""
