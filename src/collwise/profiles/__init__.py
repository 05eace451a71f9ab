"""What was measured on one machine, kept in a file.

Read in this order: `records` (what a profile is made of), `fingerprint` (the machine it belongs
to), `profile` (the profile and its file), `level_machine` (the machine that it describes), `store`
(where the files are).
"""
