"""Open MPI's rules file, in the classic text of versions 4 and 5, which coll/tuned reads.

For each collective the file lists numbers of ranks, and for each number the message sizes
from which an algorithm is used: lines of bytes, algorithm, fan-out and segment size.  Algorithm 0
is the library's own choice.  Version 6 would read such files shifted by one entry.

With several ranks on each of several nodes coll/han stands before coll/tuned, and has a file of its
own: it hands the sizes of the rules to coll/tuned, and serves all others as it does without a file.
"""

from collections.abc import Callable, Mapping, Sequence

from collwise.formats.selection_rules import Installed, Rule, RuleFormat, by_method

_NUMBERS = {"Allgather": 0, "Allreduce": 2, "Bcast": 7, "Reduce": 11, "Reduce_scatter_block": 13}
"""Open MPI's numbers of collectives, without Allgatherv: no program can try its algorithms."""
_HAN = ".han"
"""The suffix of the path of coll/han's file."""
_PLACES = {"segment", "chains", "fanout"}
"""The settings for which a line has a place, or that no raced algorithm reads."""
_IN_ORDER: Mapping[str, Sequence[str]] = {
    "Allreduce": ("basic_linear", "recursive_doubling", "rabenseifner"),
    "Reduce": ("linear", "in-order_binary", "rabenseifner"),
    "Reduce_scatter_block": ("basic_linear", "recursive_doubling", "butterfly"),
}
"""The algorithms that combine in the order of ranks where an operator does not commute.  A rule is
in force for all operators: the library does not check them."""
_CALLING = {("Allreduce", "nonoverlapping"), ("Reduce_scatter_block", "basic_linear")}
"""The algorithms that call other collectives, which coll/tuned served in the race."""


def why_not(rule: Rule, library: Installed) -> str:
    """Why the files cannot express a rule; empty if they can."""
    if rule.composed and (rule.method, rule.name) in _CALLING:
        return "it calls other collectives, which coll/han would serve"
    if rule.composed and rule.method == "Allgather":
        return "coll/han counts each rank's bytes, coll/tuned those of all"
    unsaid = sorted(rule.changed.keys() - _PLACES)
    return f"the file has no place for {' and '.join(unsaid)}" * bool(unsaid)


def bodies(rules: Sequence[Rule], library: Installed) -> dict[str, str]:
    """The files without their comments: coll/tuned's, and coll/han's if a rule needs it."""
    methods, by_han = by_method(rules), by_method(_by_han(rules))
    lines = [f"{len(methods)}  # collectives"]
    for method, by_ranks in methods.items():
        lines += [f"{_NUMBERS[method]}  # {method}", *_lines(by_ranks, 0, "0 0 0", _tuned)]
    if not by_han:
        return {"": _text(lines)}
    levels = [f"{len(by_han)}  # collectives"]
    for method, by_ranks in by_han.items():
        levels += [method.lower(), "1  # level", "global_communicator"]
        levels += _lines(by_ranks, 1, "han", lambda rule: "tuned")
    return {"": _text(lines), _HAN: _text(levels)}


def _by_han(rules: Sequence[Rule]) -> list[Rule]:
    """The rules for calls that reach coll/tuned only through coll/han."""
    return [rule for rule in rules if rule.composed and rule.method != "Reduce_scatter_block"]


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _lines(
    by_ranks: Mapping[int, Sequence[Rule]], fewest: int, default: str, said: Callable[[Rule], str]
) -> list[str]:
    """Lines with the algorithm for each range of ranks and of bytes, by where the ranges begin.

    fewest: the first number of ranks.   default: the algorithm where there is no rule.   said:
    returns the text for a rule's algorithm.
    """
    served = {fewest: [f"0 {default}"]}
    for ranks, some in by_ranks.items():
        by_size = {0: default}
        for rule in some:
            by_size[rule.first] = said(rule)
            by_size[rule.last + 1] = default
        lines = [f"{nbytes} {who}" for nbytes, who in by_size.items()]
        served |= {ranks: lines, ranks + 1: [f"0 {default}"]}
    lines = [f"{len(served)}  # numbers of ranks"]
    for ranks, some_lines in served.items():
        lines += [f"{ranks} {len(some_lines)}  # from so many ranks on, so many lines", *some_lines]
    return lines


def _tuned(rule: Rule) -> str:
    chains, segment = (rule.settings.get(name, 0) for name in ("chains", "segment"))
    return f"{rule.number} {chains} {segment}"


def undoing(rules: Sequence[Rule]) -> dict[str, str]:
    """The variables that undo what a job forces, since the library prefers that to files."""
    return {f"OMPI_MCA_coll_tuned_{one.lower()}_algorithm": "0" for one in by_method(rules)}


def variables(rules: Sequence[Rule], path: str) -> dict[str, str]:
    """The environment variables that put the files in force."""
    han = {
        "OMPI_MCA_coll_han_use_dynamic_file_rules": "1",
        "OMPI_MCA_coll_han_dynamic_rules_filename": f"{path}{_HAN}",
    }
    return {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": path,
        **undoing(rules),
        **(han if _by_han(rules) else {}),
    }


FORMAT = RuleFormat(
    "Open MPI",
    (4,),
    (6,),
    why_not,
    bodies,
    "# {}\n",
    variables,
    _IN_ORDER,
    undoing=undoing,
    cannot_say=(
        "roots: a rule counts for every root, and was raced with root 0",
        "nodes: a rule counts for as many ranks, wherever they lie",
        "the radix of knomial, and how many requests a Reduce may have: variables of the job do",
    ),
    not_raced=(
        "segment sizes and fan-outs other than the library's own: races had those",
        "Allgatherv: a running program cannot change its algorithm",
        "what coll/han runs inside nodes and between them: a running program cannot change it",
    ),
)
