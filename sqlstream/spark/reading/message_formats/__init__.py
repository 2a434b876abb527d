"""The formats of the keys and values of messages: a parser for each, and the schema registry."""
