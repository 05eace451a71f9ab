"""Numbers only: what messages cost, the theory of broadcasts and combines, networks, lower bounds.

Read in this order: `exact` (how numbers come in and go out), `machine` (the cost of a message),
`measured_machine` (the same from measurements), `postal` and `hybrid` (exact theory), `bounds`.
Apart from these, `topology` has networks and their routes, `presets` the papers' machines and
`sources` the papers' distributions of sources on a mesh.
"""
