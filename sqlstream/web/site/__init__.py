"""The documentation site: its modules for the browser, Markdown, and the files of the site."""
