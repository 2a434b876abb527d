"""The history of a project's runs in a SQLite file, derived from the journal of events."""
