"""What was measured on one machine, kept in a file.

Read in this order: `records` (what a profile is made of), `fingerprint` (the machine it belongs
to), `profile` (the profile and its file, in which the newest measurements lie beside its own
fields), `level_machine` (the machine that it describes), `store` (where the files are).

A new field has a default, since files of earlier versions stay readable.  `VERSION` and the
`Literal` of versions in `profile` rise with it: earlier programs refuse fields that they do not
know.  A new field of a fingerprint has a label in `LABELS` of `fingerprint`.
"""
