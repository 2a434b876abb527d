"""Runs: the session, prepared queries, ledgers, records."""
