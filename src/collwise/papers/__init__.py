"""Papers run again: what each says, what we compute, and whether the two agree.

`claims` says what a claim is and how a verdict comes about; `exhibits` what a figure or a table is;
each paper has a folder, which computes through the public surface of collwise (`import collwise`).
`reproduction` runs all of it, `papers_page` shows it.
"""
