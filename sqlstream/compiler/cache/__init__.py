"""What one compilation remembers for the next, so that an unchanged file is neither rendered nor parsed again."""
