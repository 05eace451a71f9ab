"""The operating system, and quantities as text: what every other room may use.

`quantities` reads what people type (sizes, times, rates), `formatting` writes it, `integers` checks
whole numbers.  `host` describes this machine, `launcher` starts ranks, `files` replaces files,
`toml_files` reads those that people write in TOML.
"""
