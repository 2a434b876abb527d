"""Alerts of queries: what they measure, when they are raised and resolved, and their texts."""
