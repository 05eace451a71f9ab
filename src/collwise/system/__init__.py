"""The operating system, and quantities as text, for all other packages of collwise.

`quantities` reads sizes, times and rates from text, `formatting` writes them, `integers` checks
whole numbers.  `host` describes this machine, `launcher` starts ranks, `files` reads and replaces
files, `toml_files` reads TOML files.
"""
