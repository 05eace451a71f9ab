"""`python -m collwise` is `collwise`."""

from collwise.cli import main

main()
