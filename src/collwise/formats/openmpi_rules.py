"""Open MPI's rules file, in the classic text of versions 4 and 5, which coll/tuned reads.

For each collective the file lists numbers of ranks, and for each of these the smallest messages
from which on an algorithm serves: lines of bytes, algorithm, fan-out and segment size.  Algorithm 0
is the library's own choice.  Version 6 would read such files shifted by one entry.
"""

from collections.abc import Mapping, Sequence

from collwise.formats.selection_rules import Installed, Rule, RuleFormat, by_method

_NUMBERS = {"Allreduce": 2, "Bcast": 7, "Reduce": 11, "Reduce_scatter_block": 13}
"""The library's numbers of collectives; no program can try its other allgathervs."""
_PLACES = {"segment", "chains", "fanout"}
"""The settings for which a line has a place, or that no raced algorithm reads."""
_IN_ORDER: Mapping[str, Sequence[str]] = {
    "Allreduce": ("basic_linear", "recursive_doubling", "rabenseifner"),
    "Reduce": ("linear", "in-order_binary", "rabenseifner"),
    "Reduce_scatter_block": ("basic_linear", "recursive_doubling", "butterfly"),
}
"""The algorithms that combine in the order of ranks where an operator does not commute.  A rule is
in force for all operators, and the library does not look."""


def why_not(rule: Rule, library: Installed) -> str:
    """Why the file cannot say a rule; empty if it can."""
    unsaid = sorted(rule.changed.keys() - _PLACES)
    return f"the file has no place for {' and '.join(unsaid)}" * bool(unsaid)


def body(rules: Sequence[Rule], library: Installed) -> str:
    """The file without its comments."""
    methods = by_method(rules)
    lines = [f"{len(methods)}  # collectives"]
    for method, by_ranks in methods.items():
        sizes = {0: ["0 0 0 0"]}
        for ranks, some in by_ranks.items():
            sizes |= {ranks: _lines(some), ranks + 1: ["0 0 0 0"]}
        lines += [f"{_NUMBERS[method]}  # {method}", f"{len(sizes)}  # numbers of ranks"]
        for ranks, served in sizes.items():
            lines += [f"{ranks} {len(served)}  # from so many ranks on, so many lines", *served]
    return "".join(f"{line}\n" for line in lines)


def _lines(rules: Sequence[Rule]) -> list[str]:
    """From which size on which algorithm serves, on one number of ranks."""
    by_size = {0: "0 0 0"}
    for rule in rules:
        chains, segment = (rule.settings.get(name, 0) for name in ("chains", "segment"))
        by_size[rule.first] = f"{rule.number} {chains} {segment}"
        by_size[rule.last + 1] = "0 0 0"
    return [f"{nbytes} {line}" for nbytes, line in by_size.items()]


def variables(rules: Sequence[Rule], path: str) -> dict[str, str]:
    """What puts the file in force; the library would prefer algorithms that variables force."""
    return {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": path,
        **{f"OMPI_MCA_coll_tuned_{one.lower()}_algorithm": "0" for one in by_method(rules)},
    }


FORMAT = RuleFormat("Open MPI", (4,), (6,), why_not, body, "# {}\n", variables, _IN_ORDER)
