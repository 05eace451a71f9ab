"""Papers checked again: their claims, the figures we compute, and whether each sentence holds.

`findings` says what a claim and a finding are; each paper has a folder, which lists its claims.
"""
