"""Finds which algorithms of its own the library has, from its control variables.

MPICH lists the algorithms' names in a variable's description, and their values count from 0.  Open
MPI enumerates the names.  `_NAMINGS` says what the variables of each library are called.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.errors import InvalidArgument, UnknownName
from collwise.measure.race import OWN
from collwise.mpi.library.tool_interface import Variable, missing, variables
from collwise.profiles.records import FORMS, Form
from collwise.schedule.collectives import COLLECTIVES
from collwise.system.quantities import parse_size

_WRONG = "MPICH 5.0.2's leaves wrong data unless the ranks are a power of two"
_NO_ALGORITHMS: Mapping[str, str] = {
    "auto": "it leaves the choice to the library",
    "sched_auto": "it leaves the choice to the library",
    "ignore": "it leaves the choice to the library",
    "nb": "it is the library's non-blocking form",
    "ccl": "it needs a library for accelerators",
    "tsp_scatterv_recexch_allgatherv": _WRONG,
    "tsp_scatterv_ring_allgatherv": _WRONG,
}
"""Names in the library's lists that collwise does not use as algorithms, with the reason."""
_WHERE_MADE: Mapping[str, int] = {"coll_tuned_use_dynamic_rules": 1, "coll_han_priority": 0}
"""Further variables to set before a communicator is duplicated, if they exist, with values."""
_BEFORE_START = "the job must start with OMPI_MCA_"
_RANKS: Mapping[str, int] = {"two_proc": 2}
"""Algorithms that run on a single number of ranks only, with that number."""
_LARGEST = 2**31 - 1
_RADIX = 4
"""Algorithms with a radix are raced with the library's radix and, on more ranks, with this one."""
_FLAT, _CHOSEN = "NM only", "Auto"
"""How MPICH's words on a composition begin that treats all ranks alike, whatever their nodes; and
on the one that MPICH chooses itself."""
_COMPOSITIONS = re.compile(r"\b(\d+) ([A-Z].*?)(?=\s+\d+ [A-Z]|\s*$)", re.DOTALL)
"""Finds MPICH's compositions in a description: each has a number, then words."""
_LISTED = re.compile(r"^\s*(\w+)\s+-\s", re.MULTILINE)
_GLUED = re.compile(
    r"(?<!_)((?:sched_|tsp_)?(?:auto|nb|smp|naive|tree|ring|brucks|binomial|pairwise|noncommutative"
    r"|recursive_(?:doubling|halving)|reduce_scatter_(?:all)?gather|recexch(?:_\w+)?|release_gather"
    r"|scatterv?_(?:recursive_doubling|ring|recexch)_allgatherv?|mpir|error|print|silent))\s+-\s"
)
"""Finds the names in descriptions of MPICH 4.0, whose lines it joins without a space."""


class OwnAlgorithm(NamedTuple):
    """One of the library's own algorithms for a collective, in one form of its calls.

    library: whose algorithm it is, such as "MPICH".
    variable, value: to choose the algorithm, this value is written to this variable.   parameters:
    by name of a setting, its variable.   duplicated: whether the library reads
    variables when a communicator is made, so that the algorithm needs a duplicate.   more: further
    variables to write, with values, so that the library follows the choice.
    """

    name: str
    library: str
    variable: Variable
    value: int
    parameters: Mapping[str, Variable]
    duplicated: bool = False
    more: tuple[tuple[Variable, int], ...] = ()

    @property
    def compositions(self) -> Mapping[int, str]:
        """By number, how the library says that it composes the algorithm; empty if it does not."""
        if (composition := self.parameters.get("composition")) is None:
            return {}
        return {int(n): words for n, words in _COMPOSITIONS.findall(composition.description)}

    @property
    def flat(self) -> int | None:
        """The number of the composition that treats all ranks alike; None if there is none."""
        return next((n for n, words in self.compositions.items() if words.startswith(_FLAT)), None)

    @property
    def raced_compositions(self) -> list[int]:
        """The numbers of the library's choice of a composition, and of the flat one."""
        raced = (_CHOSEN, _FLAT)
        return [n for n, words in self.compositions.items() if words.startswith(raced)]

    def in_force(self, settings: Mapping[str, int]) -> dict[str, int]:
        """The value of each setting in a call: the library's where `settings` has none."""
        return {name: settings.get(name, one.read()) for name, one in self.parameters.items()}

    def writes(self, settings: Mapping[str, Any]) -> tuple[tuple[Variable, int], ...]:
        """The variables to write, with values, to run the algorithm.   settings: numbers or text.

        Raises UnknownName for an unknown setting, InvalidArgument for a wrong value.
        """
        chosen = [(self.variable, self.value), *self.more]
        for name, value in settings.items():
            if name not in self.parameters:
                raise UnknownName.of(f"setting of {OWN}{self.name}", name, self.parameters)
            asked = f"{OWN}{self.name} with {name} = {value}"
            if (number := parse_size(str(value))) > _LARGEST:
                raise InvalidArgument(asked, "it does not fit an integer", "give a smaller number")
            known = self.compositions
            if name == "composition" and known and number not in known:
                raise InvalidArgument(
                    asked,
                    f"there is no composition {number}",
                    f"it has {', '.join(map(str, known))}",
                )
            if name == "k" and number < 2:
                raise InvalidArgument(asked, "k is too small", "give 2 or more")
            chosen.append((self.parameters[name], number))
        return tuple(chosen)


class Catalogue(NamedTuple):
    """The library's own algorithms for one form of an MPI method, such as blocking calls of Bcast.

    algorithms: by name.   left_out: why other algorithms are not used, by name; "" stands for all.
    """

    algorithms: Mapping[str, OwnAlgorithm] = {}
    left_out: Mapping[str, str] = {}

    def find(self, name: str, ranks: int) -> OwnAlgorithm | str:
        """The algorithm called `name`, or why there is none for `ranks` ranks."""
        if _RANKS.get(name, ranks) != ranks:
            return f"it is for {_RANKS[name]} ranks"
        if (known := self.algorithms.get(name)) is not None:
            return known
        if reason := self.left_out.get(name, self.left_out.get("")):
            return reason
        return str(UnknownName.of("the library's algorithm", name, self.algorithms))


class _Naming(NamedTuple):
    """The names of a library's variables.   {0} stands for the method's name, such as Bcast.

    library: its name, as `planner.own_times` has it.   blocking: the variable that chooses the
    algorithm of blocking calls.   later: the variable for non-blocking and persistent calls.
    parameter: a pattern of the names of variables that are settings.   case: turns the method's
    name into upper or lower case.   duplicated: whether the library reads the variables of blocking
    calls when a communicator is made.   inside: the variable whose value "mpir" keeps the library
    from serving calls inside a node by its shared memory, which follows no other variable; MPICH
    does so below MPI_THREAD_MULTIPLE.
    """

    library: str
    blocking: str
    later: str
    inside: str
    parameter: str
    case: Callable[[str], str]
    duplicated: bool


_NAMINGS = (
    _Naming(
        "MPICH",
        "MPIR_CVAR_{0}_INTRA_ALGORITHM",
        "MPIR_CVAR_I{0}_INTRA_ALGORITHM",
        "MPIR_CVAR_{0}_POSIX_INTRA_ALGORITHM",
        r"MPIR_CVAR_{0}_(?:(?P<of>\w+)_)?(?P<what>KVAL|PIPELINE_CHUNK_SIZE|COMPOSITION)",
        str.upper,
        duplicated=False,
    ),
    _Naming(
        "Open MPI",
        "coll_tuned_{0}_algorithm",
        "coll_libnbc_i{0}_algorithm",
        "",
        r"coll_tuned_{0}_algorithm_(?:(?P<of>knomial)_)?(?P<what>segmentsize|radix|\w+_fanout)",
        str.lower,
        duplicated=True,
    ),
)
SETTINGS: Mapping[str, str] = {
    "KVAL": "k",
    "PIPELINE_CHUNK_SIZE": "segment",
    "COMPOSITION": "composition",
    "segmentsize": "segment",
    "radix": "k",
    "tree_fanout": "fanout",
    "chain_fanout": "chains",
}
"""A map from the last word of a library's variable to our name of the setting."""


@cache
def catalogue(method: str, form: Form) -> Catalogue:
    """The library's own algorithms for an MPI method, such as "Bcast", in one form of calls."""
    if not variables():
        return Catalogue(left_out={"": missing()})
    for naming in _NAMINGS:
        name = naming.blocking if form == "blocking" else naming.later
        name = name.format(naming.case(method))
        if (variable := variables().get(name)) is not None:
            return _read(naming, method, form, variable)
    nothing = f"the library says of no variable that it chooses for {form} calls of {method}"
    return Catalogue(left_out={"": nothing})


def _names(description: str) -> list[str]:
    """The names that MPICH lists in a variable's description; none unless all can be read."""
    if "\n" in description:
        return _LISTED.findall(description)
    names: list[str] = _GLUED.findall(description)
    return names if len(names) == len(re.findall(r"\w\s+-\s", description)) else []


def _read(naming: _Naming, method: str, form: Form, variable: Variable) -> Catalogue:
    listed = {name: place for place, name in enumerate(_names(variable.description))}
    if not (choices := variable.choices or listed):
        reason = f"no algorithm's name can be read from the description of {variable.name}"
        return Catalogue(left_out={"": reason})
    reason = "" if variable.writable else f"a running program cannot change {variable.name}"
    duplicated = naming.duplicated and form == "blocking"
    for one, value in where_made() if duplicated else ():
        if not one.writable and one.read() != value:
            reason = f"{_BEFORE_START}{one.name}={value}, which a running program cannot change"
    if reason:
        return Catalogue(left_out=dict.fromkeys(choices, reason))
    of_method = method if form == "blocking" else f"I{method}"
    parameters = list(_parameters(naming, of_method))
    more = []
    inside = variables().get(naming.inside.format(naming.case(of_method)))
    if inside is not None and MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        words = _names(inside.description)
        more = [(inside, words.index("mpir"))] if "mpir" in words else []
    algorithms, left_out = {}, {}
    for name, value in choices.items():
        if reason := _NO_ALGORITHMS.get(name, ""):
            left_out[name] = reason
            continue
        own = {short: one for of, short, one in parameters if _belongs(of, name, choices)}
        about = name, naming.library, variable, value, own
        algorithms[name] = OwnAlgorithm(*about, duplicated, tuple(more))
    return Catalogue(algorithms, left_out)


def to_set_before() -> str:
    """What a job must set before it starts, so that algorithms can be chosen; empty for nothing."""
    reasons = catalogue("Bcast", "blocking").left_out.values()
    return next((reason for reason in reasons if reason.startswith(_BEFORE_START)), "")


def where_made() -> tuple[tuple[Variable, int], ...]:
    """The variables, with values, to set before a communicator is duplicated for an algorithm."""
    known = variables()
    return tuple((known[name], value) for name, value in _WHERE_MADE.items() if name in known)


def worth_racing(
    method: str, ranks: int, *, composed: bool, form: Form = "blocking"
) -> list[tuple[str, Mapping[str, int]]]:
    """Names and settings of the library's algorithms that are worth a race, in one form of calls.

    composed: whether there are several nodes, some with several ranks.  Where the library then
    composes, an algorithm is a candidate as the library composes it, and another one without
    levels; the settings of both name the composition.
    """
    found: list[tuple[str, Mapping[str, int]]] = []
    known = catalogue(method, form)
    for name, algorithm in known.algorithms.items():
        if isinstance(known.find(name, ranks), str):
            continue
        variants: list[dict[str, int]] = [{}]
        if "k" in algorithm.parameters and ranks > _RADIX:
            variants.append({"k": _RADIX})
        if composed and (numbers := algorithm.raced_compositions):
            variants = [{**one, "composition": n} for one in variants for n in numbers]
        found += [(name, settings) for settings in variants]
    return found


def composition(method: str, form: Form, name: str, settings: Mapping[str, Any]) -> str:
    """The library's words on the composition that settings name, as a clause; empty if none."""
    if "composition" not in settings:
        return ""
    number = parse_size(str(settings["composition"]))
    words = catalogue(method, form).algorithms[name].compositions.get(number, "not described")
    return f"composition {number} is: {words}"


def refusing(name: str) -> tuple[tuple[Variable, int], ...]:
    """Variables and values that make the library raise an error rather than replace an algorithm.

    Empty if the library cannot do so.  Also empty for MPICH's smp, which calls the collective again
    on some of the ranks; an error in that call would hang the other ranks.  For compositions, which
    do so, too, see `OwnCalls.composed`.
    """
    variable = variables().get("MPIR_CVAR_COLLECTIVE_FALLBACK")
    if variable is None or "smp" in name or "error" not in (words := _names(variable.description)):
        return ()
    return ((variable, words.index("error")),)


def _parameters(naming: _Naming, method: str) -> Iterator[tuple[str, str, Variable]]:
    """Yield each control variable that holds a setting of `method`.

    Yields (the algorithm in the variable's name, in lower case, or ""; our name of the setting;
    the variable).
    """
    pattern = re.compile(naming.parameter.format(naming.case(method)))
    for name, variable in variables().items():
        if match := pattern.fullmatch(name):
            yield (match["of"] or "").lower(), SETTINGS[match["what"]], variable


def _belongs(of: str, name: str, choices: Mapping[str, int]) -> bool:
    """Whether a setting whose variable names `of`, such as "tree", belongs to algorithm `name`.

    Where there are both brucks and k_brucks, the radix belongs to k_brucks only.
    """
    return of in name and (of != name or f"k_{of}" not in choices)


def digest() -> str:
    """A text of all variables, and of which algorithms they let a running program choose.

    Own algorithms serve only if all ranks have equal texts.
    """
    known = sorted((one.name, one.nbytes, one.description) for one in variables().values())
    methods = [method for collective in COLLECTIVES.values() for method in collective.methods]
    ways = product(methods, FORMS)
    return repr((known, [sorted(catalogue(*way).left_out.items()) for way in ways]))
