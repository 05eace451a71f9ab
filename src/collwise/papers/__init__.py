"""Papers run again: what each says, what we compute, and whether the two agree.

`claims` says what a claim is and how a verdict comes about; `exhibits` what a figure or a table is.
`bruck1996`, `vandegeijn1991` and `hambrusch1998` compute mostly through the public surface of
collwise (`import collwise`); `measured` repeats experiments on MPI.  `reproduction` runs papers,
`papers_page` shows the results.

A new paper needs a folder whose `__init__.py` defines `PAPER`, an entry in `PAPERS` of
`reproduction`, and references in `docs/bibliography.bib`; its figures and tables are in `EXHIBITS`.
A claim's `because` says why the claim does not hold.  `docs/papers.md` is a copy of the file
`collwise-papers/claims.md` that `collwise reproduce` writes.
"""
