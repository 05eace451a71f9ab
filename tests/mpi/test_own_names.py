"""The numbers of the library's own algorithms: the library itself reads their names."""

import json
from itertools import zip_longest

import pytest

from tests.mpi.launching import Library

_TELL = """
import json
from collwise.mpi.library.own_algorithms import FORMS, catalogue
from collwise.schedule.collectives import COLLECTIVES

print(json.dumps([
    [one.variable.name, one.name, one.value, one.variable.read()]
    for collective in COLLECTIVES.values() for method in collective.methods for form in FORMS
    for one in catalogue(method, form).algorithms.values()
]))
"""


def _told(mpi: Library, **chosen: str) -> list[list[str]]:
    ran = mpi.run(1, "-c", _TELL, limit_s=60, **chosen)
    assert ran.returncode == 0, ran.stderr
    told: list[list[str]] = json.loads(ran.stdout)
    return told


@pytest.mark.mpi
@pytest.mark.no_cover
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"], indirect=True)
def test_every_name_has_the_number_that_the_library_gives_it(mpi: Library) -> None:
    """A start with one name for each variable, read by the library, as often as there are names."""
    names: dict[str, dict[str, int]] = {}
    for variable, name, value, _ in _told(mpi):
        names.setdefault(variable, {})[name] = int(value)
    assert len(names) >= 8
    prefix = "OMPI_MCA_" if mpi.name == "openmpi" else ""
    for chosen in zip_longest(*names.values()):
        by_variable = {v: name for v, name in zip(names, chosen, strict=True) if name is not None}
        told = _told(mpi, **{f"{prefix}{v}": name for v, name in by_variable.items()})
        read = {variable: int(now) for variable, _, _, now in told}
        for variable, name in by_variable.items():
            assert read[variable] == names[variable][name], (variable, name)
