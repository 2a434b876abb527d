"""`sqlstream test`: unit tests run, recorded, updated and watched."""
