"""Papers run again: what each says, what we compute, and whether the two agree.

`claims` says what a claim is and how a verdict comes about; `exhibits` what a figure or a table is.
`bruck1996`, `vandegeijn1991` and `hambrusch1998` compute through the public surface of collwise
(`import collwise`); `measured` has what they measured on ranks.  `reproduction` runs all of it,
`papers_page` shows it.

A paper is a folder whose `__init__.py` has `PAPER`, a name in `PAPERS` of `reproduction`, and
references in `docs/bibliography.bib`; its figures and tables are in `EXHIBITS`.  `because` computes
why a claim does not hold.  `collwise reproduce` writes `docs/papers.md` anew, as
`collwise-papers/claims.md`.
"""
