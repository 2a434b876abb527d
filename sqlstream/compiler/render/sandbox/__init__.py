"""Jinja's sandbox with a budget: templates that cannot run away, each error at its place."""
