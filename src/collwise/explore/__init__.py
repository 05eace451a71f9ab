"""An interactive page: turn λ, ranks and bytes, and see what changes.

`questions` computes what the page shows, `app` is the page, a marimo notebook, and `serving` serves
it.
"""
