"""The algorithms: a folder for each collective, a short file for each algorithm or family.

`registry`     the class `Algorithm`, and the table of all algorithms
`search`       compares the settings of an algorithm: which are worth trying
`reductions`   registers algorithms that combine
`in_rounds`    broadcasts and reduces in rounds; chooses the length of their pieces
`circulant_pieces`  reduce-scatters and allreduces on circulant graphs, in pieces
`exchanges`    allreduces, reduces and reduce-scatters by exchanges in groups of ranks
`parts`        reads the names and settings of algorithms that other algorithms use
`levels`       algorithms for machines with levels

Importing this package registers all algorithms.  It also imports the modules that other installed
packages name as entry points of the group "collwise.algorithms".
"""

import logging
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules

from collwise.algorithms.registry import ALGORITHMS, Algorithm, register
from collwise.schedule.collectives import COLLECTIVES

__all__ = ["ALGORITHMS", "Algorithm", "register"]

for _folder in (*COLLECTIVES, "levels"):
    _package = import_module(f"{__name__}.{_folder}")
    for _module in iter_modules(_package.__path__):
        import_module(f"{_package.__name__}.{_module.name}")

for _entry in entry_points(group="collwise.algorithms"):
    try:
        _entry.load()
    except Exception:  # a broken plugin must not disable the other algorithms
        logging.getLogger("collwise").warning("no algorithms of %s", _entry.value, exc_info=True)
