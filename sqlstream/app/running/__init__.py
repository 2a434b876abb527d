"""Runs: a session, queries made ready, ledgers, records."""
