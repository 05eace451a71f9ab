"""Profiles: the measurements of one machine, kept in a file.

Read in this order: `records` (the parts of a profile), `fingerprint` (the machine it belongs to),
`profile` (the profile and its file, in which the newest measurements lie beside its own fields),
`level_machine` (the machine that it describes), `store` (where the files are).

A new field needs a default, since files of earlier versions stay readable.  It also raises
`VERSION` and the `Literal` of versions in `profile`, since earlier programs refuse fields that they
do not know.  A new field of a fingerprint needs a label in `LABELS` of `fingerprint`.
"""
