"""From rendered text back to the template that gave it."""
