"""Reads and checks the files of a project."""
