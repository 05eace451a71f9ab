"""Makes schedules: a folder for each collective, a short file for each algorithm or family.

`registry`     what an algorithm is, and how one is registered
`reductions`   what those that combine share
`in_rounds`    what broadcasts and reduces in rounds share
`circulant_pieces`  reduce-scatters and allreduces around a circle, in pieces
`exchanges`    allreduces, reduces and reduce-scatters in groups: a table of names, one search
`parts`        algorithms as parts of others
`levels`       algorithms for machines with levels

Importing this package registers all of them, and those of other packages that name a module of
theirs as an entry point of the group "collwise.algorithms".
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
    except Exception:  # whatever is wrong with it, the others serve
        logging.getLogger("collwise").warning("no algorithms of %s", _entry.value, exc_info=True)
