"""Servers on loopback, for tests and `make services`."""
