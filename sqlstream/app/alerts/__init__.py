"""Alerts: what they measure, when they are raised and resolved, and how they reach their channels."""
