"""Commands about one query and what it has stored."""
