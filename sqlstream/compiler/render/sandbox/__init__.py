"""Jinja's sandbox with a budget: templates always end, and each error has its location."""
