"""The commands, one file each.

A module of a command imports what declares the command: click, `cli/` and the requests. What executes and prints it is
imported in the function that is called, so that help and completion of a command load nothing else.
"""
