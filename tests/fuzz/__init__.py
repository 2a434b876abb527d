"""Mutated projects, which must compile or give well-formed findings."""
