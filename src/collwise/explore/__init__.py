"""An interactive page with sliders for λ, ranks and bytes, which shows what they change.

`questions` computes what the page shows, `app` is the page, a marimo notebook, and `serving` serves
it.

A new control goes into `_sliders`, `_asked` and `_page` of `app`.  The page's tests need a browser:
`uv run --extra explore --group browser pytest -m exhaustive tests/explore`.
"""
