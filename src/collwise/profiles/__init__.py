"""Profiles: the measurements of one machine, kept in a file.

Read in this order: `records` (the parts of a profile), `fingerprint` (the kind of machine that was
measured), `profile` (the profile and its file), `level_machine` (the machine model that a profile
describes), `store` (where the files are).

A new field needs a default, since files of earlier versions stay readable.  For a new field, raise
`VERSION` and the `Literal` of versions in `profile`, since earlier programs refuse fields that they
do not know.  A new field of a fingerprint needs a label in `LABELS` of `fingerprint`.
"""
