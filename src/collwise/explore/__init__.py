"""An interactive page: turn λ, ranks and bytes, and see what changes.  The page needs marimo."""
