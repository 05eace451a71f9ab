"""MPICH's selection file: its own table, in JSON, with our rules in their place.

A file replaces the library's whole table, so that is taken from the library.  Keys are tests or
decisions, tried in their order.  Our rules stand below tests of the communicator, which are read
wrongly below tests of sizes.  Operators for which an algorithm is wrong keep the table's choice.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from collwise.errors import InvalidArgument
from collwise.formats.selection_rules import Installed, Rule, RuleFormat, by_method

Table: TypeAlias = dict[str, Any]
"""Tests and decisions, and what follows from them, in the order in which they are tried."""
_TREE, _EXCHANGE = "tree_type=kary k={k} is_non_blocking=1", "k={k} single_phase_recv=0"
_PARAMETERS: Mapping[str, str] = {
    "Bcast_intra_tree": _TREE,
    "Bcast_intra_pipelined_tree": _TREE + " chunk_size={segment} recv_pre_posted=0",
    "Allreduce_intra_tree": "tree_type=knomial_1 k={k} chunk_size={segment} buffer_per_child=0",
    "Allreduce_intra_recursive_multiplying": "k={k}",
    "Allreduce_intra_recexch": _EXCHANGE,
    "Allreduce_intra_k_reduce_scatter_allgather": _EXCHANGE.format(k=2),
}
"""The parameters that the file has to have for an algorithm, as the library's variables have them
by default."""
_SPLITTING = re.compile("ring|reduce_scatter")
"""Allreduces and reduces that cut vectors: that is wrong for some operators of users, and needs an
element for each rank."""


def why_not(rule: Rule, library: Installed) -> str:
    """Why the file cannot say a rule; empty if it can."""
    if rule.name == "smp" or f"MPIR_{rule.method}_intra_{rule.name}" not in library.accepted:
        return "the file cannot name it"
    return "the file has no place for a composition" * ("composition" in rule.changed)


def body(rules: Sequence[Rule], library: Installed) -> str:
    """The file without its comments.  Raises InvalidArgument if the library has no table."""
    tables = [text for text in library.tables if "MPIR_Bcast_intra_" in text]
    if not tables:
        raise InvalidArgument(
            f"a selection file for {library.library}",
            "it has to hold the library's whole table, which was not found in the library",
            "use an MPICH that has one: 4.0 or later",
        )
    table: Table = json.loads(tables[0])
    for method, by_ranks in by_method(rules).items():
        of_collective = table[f"collective={method.lower()}"]
        default, chosen = of_collective["comm_type=intra"], Table()
        for ranks, some in by_ranks.items():
            chosen.setdefault(f"comm_size<={ranks - 1}", default)
            chosen[f"comm_size<={ranks}"] = {
                f"comm_hierarchy={one}": _by_size(some, reached(default, ranks, one))
                for one in ("parent", "any")
            }
        of_collective["comm_type=intra"] = {**chosen, "comm_size=any": default}
    return json.dumps(table, indent=1) + "\n"


def reached(table: Table, ranks: int, hierarchy: str) -> Table:
    """The part of a table that communicators of so many ranks get to, without tests of that.

    hierarchy: "parent" of communicators that the library splits by nodes, "any" of others.
    """
    for test, then in table.items():
        if _holds(test, ranks, hierarchy):
            return reached(then, ranks, hierarchy)
    return {
        test: reached(then, ranks, hierarchy)
        for test, then in table.items()
        if not test.startswith(("comm_size", "comm_hierarchy"))
    }


def _holds(test: str, ranks: int, hierarchy: str) -> bool:
    """Whether a test of the communicator holds; False for other tests."""
    if match := re.fullmatch(r"comm_size(<=?)(\d+)", test):
        return ranks < int(match[2]) + (match[1] == "<=")
    holding = ["comm_size=any", f"comm_hierarchy={hierarchy}", "comm_hierarchy=any"]
    return test in holding or (test == "comm_size=pow2" and ranks & (ranks - 1) == 0)


def _by_size(rules: Sequence[Rule], default: Table) -> Table:
    """What serves messages of each size on the rules' number of ranks."""
    total = rules[0].method in ("Allgatherv", "Reduce_scatter_block")
    size, chosen = "total_msg_size" if total else "avg_msg_size", Table()
    for rule in rules:
        if rule.first:
            chosen.setdefault(f"{size}<={rule.first - 1}", default)
        chosen[f"{size}<={rule.last}"] = _guarded(rule, default)
    return {**chosen, f"{size}=any": default}


def _guarded(rule: Rule, default: Table) -> Table:
    """A rule's algorithm where it is right, and the table's choice elsewhere."""
    name = f"{rule.method}_intra_{rule.name}"
    parameters = _PARAMETERS.get(name, "").format_map(rule.settings).split()
    chosen: Table = {f"algorithm=MPIR_{name}": {one: {} for one in parameters}}
    if rule.method in ("Bcast", "Allgatherv"):
        return chosen
    if _SPLITTING.search(rule.name) and rule.method in ("Allreduce", "Reduce"):
        enough = {"count<pow2": default, "count=any": chosen}
        chosen = {"is_op_built_in=yes": enough, "is_op_built_in=no": default}
    return {"is_commutative=yes": chosen, "is_commutative=no": default}


def variables(rules: Sequence[Rule], path: str) -> dict[str, str]:
    """What puts the file in force; the library would prefer algorithms that variables force."""
    return {
        "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": path,
        **{f"MPIR_CVAR_{one.upper()}_INTRA_ALGORITHM": "auto" for one in by_method(rules)},
    }


FORMAT = RuleFormat("MPICH", (4,), (6,), why_not, body, "// {}\n", variables)
