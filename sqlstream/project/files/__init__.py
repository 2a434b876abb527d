"""The files of a project: read, and their text checked."""
