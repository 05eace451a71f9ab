"""Machine models, networks, lower bounds and the theory of the postal model: numbers only.

Read in this order: `exact` (how numbers come in and go out), `machine` (the cost of a message),
`measured_machine` (costs from measurements), `shared_memory` (ranks that publish and read),
`placement` and `levels` (machines of nodes, racks and sites), `postal` and `hybrid` (exact theory
of broadcasts and combines), `bounds` (lower bounds; some are in `pace`, `chains`, `relayed` and
`group_bounds`).
The other modules: `limits` says up to which sizes schedules are searched, planned and simulated.
`collective_names` has the aliases of collectives. `kept_hash` keeps the hashes of cache keys.
`topology` has networks and their routes. `presets` has the machines of the papers, and
`level_presets` has machines with levels. `level_notation` reads machines with levels from text.
`sources` has the papers' distributions of sources on a mesh.
"""
