"""Numbers only: what messages cost, the theory of broadcasts and combines, networks, lower bounds.

Read in this order: `exact` (how numbers come in and go out), `machine` (the cost of a message),
`measured_machine` (the same from measurements), `shared_memory` (ranks that publish and read),
`placement` and `levels` (machines of nodes, racks and sites), `postal` and `hybrid` (exact theory),
`pace`, `chains` and `bounds`.
Apart from these, `limits` says up to where schedules are searched, planned and simulated,
`collective_names` has the aliases of collectives, `kept_hash` serves what is a key of caches,
`topology` has networks and their routes, `presets` the papers' machines, `level_presets` machines
with levels, `level_notation` how people write those, and `sources` the papers' distributions of
sources on a mesh.
"""
