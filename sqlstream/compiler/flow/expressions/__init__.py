"""One expression: its output column and its errors."""
