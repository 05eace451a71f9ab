"""Makes schedules: a folder for each collective, a short file for each algorithm or family.

`registry` says what an algorithm is; `reductions` has what those that combine share, `composition`
what those for machines with levels do.  Importing this package registers them all.
"""

from importlib import import_module
from pkgutil import iter_modules

from collwise.algorithms.registry import ALGORITHMS, Algorithm
from collwise.schedule.collectives import COLLECTIVES

__all__ = ["ALGORITHMS", "Algorithm"]

for _collective in COLLECTIVES:
    _package = import_module(f"{__name__}.{_collective}")
    for _module in iter_modules(_package.__path__):
        import_module(f"{_package.__name__}.{_module.name}")
