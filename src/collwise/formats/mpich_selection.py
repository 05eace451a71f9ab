"""MPICH's selection file: the library's own table, in JSON, with our rules in it.

A file replaces a whole table, so the table is taken from the library.  Its keys are tests and
decisions, which are tried in order.  MPICH reads tests of the communicator wrongly below tests of
sizes, so our rules have them above.  The table's choice stays for operators and counts for which a
rule's algorithm is wrong.

With several ranks on each of several nodes the library composes: a second table chooses how.  An
algorithm then runs among one rank of each node, the leaders, and inside nodes.  The library asks
the first table for these parts, so a rule stands there twice: for as many ranks as there were
nodes, and for as many as a node had.  The table cannot tell how many ranks the leaders' nodes have.
Nor can it tell leaders from a program's communicator with one rank on each of as many nodes.
Only one composition lets an algorithm run among all ranks: the one of communicators without
hierarchy.  Rules that were raced with it need a second file, which replaces the second table.

From MPICH 5.1 on, tables have names, and a file replaces those that it holds: ours call the
library's own, under another name.  Tests have other words, and tell how many ranks a node has,
which all ranks see alike if nodes are regular or one.  This follows the text of MPICH's reader.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from collwise.errors import InvalidArgument
from collwise.formats.selection_rules import Installed, Rule, RuleFormat, by_method

Table: TypeAlias = dict[str, Any]
"""Maps each test or decision to the Table that follows from it; they are tried in this order."""
_TREE, _EXCHANGE = "tree_type=kary k={k} is_non_blocking=1", "k={k} single_phase_recv=0"
_PARAMETERS: Mapping[str, str] = {
    "Bcast_intra_tree": _TREE,
    "Bcast_intra_pipelined_tree": _TREE + " chunk_size={segment} recv_pre_posted=0",
    "Allreduce_intra_tree": "tree_type=knomial_1 k={k} chunk_size={segment} buffer_per_child=0",
    "Allreduce_intra_recursive_multiplying": "k={k}",
    "Allreduce_intra_recexch": _EXCHANGE,
    "Allreduce_intra_k_reduce_scatter_allgather": _EXCHANGE.format(k=2),
    "Allgather_intra_k_brucks": "k={k}",
    "Allgather_intra_recexch_doubling": _EXCHANGE,
    "Allgather_intra_recexch_halving": _EXCHANGE,
}
"""The parameters that an algorithm needs in the file, with the library's default values."""
_SPLITTING = re.compile("ring|reduce_scatter")
"""Matches the names of allreduces and reduces that cut vectors.  They need an element for each
rank, and are wrong for some user-defined operators."""
_COMPOSITIONS = ".compositions"
"""The suffix of the path of the file of compositions."""
_LETTERS = {1: "alpha", 2: "beta", 3: "gamma", 4: "delta"}
"""The last words of the compositions' names, by the library's numbers for them."""
_ONE_EACH = "comm_avg_ppn<=1"
"""A test that communicators with one rank on each node pass, but the leaders' does not."""
_NODES = re.compile(r"(\d+)x(\d+)")
"""Matches text such as "4x16": the number of nodes, and of the ranks on each of them."""
_TOTAL = ("Allgather", "Allgatherv", "Reduce_scatter_block")
"""Methods for which the table tests the bytes of all ranks together, as collwise counts them."""
_NEWER = {"is_op_built_in=yes": "builtin_op", "is_commutative=yes": "commutative",
          "count<pow2": "!count_ge_pof2"}  # fmt: skip
"""The words of tests from MPICH 5.1 on, by earlier ones.  Those that end in any or no are "any"."""
_NAME = "name={}-intra-auto"


def why_not(rule: Rule, library: Installed) -> str:
    """Why the files cannot express a rule; empty if they can."""
    if rule.name == "smp" or f"MPIR_{rule.method}_intra_{rule.name}" not in library.accepted:
        return "the file cannot name it"
    places = _PARAMETERS.get(f"{rule.method}_intra_{rule.name}", "")
    unsaid = [one for one in rule.changed if f"{{{one}}}" not in places and one != "composition"]
    if unsaid:
        return f"the file has no place for {' and '.join(unsaid)}"
    if own := _table(library, '{"name='):
        if "composition" in (rule.settings if rule.composed else rule.changed):
            return "the file has no place for composition"
        told = "local_node_size" in library.accepted and _NODES.fullmatch(rule.ranks_per_node)
        there = "the file cannot tell its nodes" if rule.composed and not told else ""
        return there if _NAME.format(rule.method.lower()) in own else "the library has no table"
    if rule.composed and rule.method == "Allgather":
        return "the library composes none, though it has a variable for it"
    number = rule.settings.get("composition")
    if number is None or not (rule.composed or "composition" in rule.changed):
        return ""
    if "composition" not in rule.changed:
        return "" if _nodes(rule) else "its nodes have different numbers of ranks"
    wanted = f"composition=MPIDI_{rule.method}_intra_composition_{_LETTERS.get(number)}"
    if [*_among_all(_table(library, "composition="), rule)] == [wanted]:
        return ""
    return f"the library has composition {number} for no communicators without hierarchy"


def clash(rule: Rule, other: Rule) -> str:
    """Why the files cannot hold a rule beside another rule; empty if they can.

    Rules for different numbers of ranks clash if the library would ask for both algorithms among
    equally many ranks: the leaders of nodes, or the ranks of a node.
    """
    if rule.method != other.method or rule.ranks == other.ranks:
        return ""
    flat = [(0 if one.composed else one.ranks, 0) for one in (rule, other)]
    parts = [_nodes(one) or alone for one, alone in zip((rule, other), flat, strict=True)]
    on_one_node = any(one.ranks_per_node.startswith("1x") for one in (rule, other))
    leaders = parts[0][0] == parts[1][0] != 0 and not on_one_node
    inside = parts[0][1] == parts[1][1] != 0
    return f"a rule for {other.ranks} ranks stands in its place" * (leaders or inside)


def bodies(rules: Sequence[Rule], library: Installed) -> dict[str, str]:
    """The files without their comments: algorithms, and compositions if a rule needs them.

    Raises InvalidArgument if the library has no table.
    """
    table = _table(library, "MPIR_Bcast_intra_")
    if not table:
        raise InvalidArgument(
            f"a selection file for {library.library}",
            "it has to hold the library's whole table, which was not found in the library",
            "use an MPICH that has one: 4.0 or later",
        )
    files = {"": _ruled(table, rules, _algorithm)}
    if composed := _composed(rules):
        table = _table(library, "composition=")
        files[_COMPOSITIONS] = _ruled(table, composed, partial(_among_all, table))
    return files


def _table(library: Installed, word: str) -> Table:
    """The library's first table that contains `word`; empty if no table does."""
    found: Table = json.loads(next((text for text in library.tables if word in text), "{}"))
    return found


def _nodes(rule: Rule) -> tuple[int, int] | None:
    """The numbers of nodes and of ranks on each, if the parts of a composition run the algorithm.

    None if the algorithm runs among all ranks, or if nodes have different numbers of ranks.
    """
    by_parts = rule.composed and "composition" in rule.settings.keys() - rule.changed.keys()
    match = _NODES.fullmatch(rule.ranks_per_node) if by_parts else None
    return (int(match[1]), int(match[2])) if match else None


def _composed(rules: Sequence[Rule]) -> list[Rule]:
    return [rule for rule in rules if "composition" in rule.changed]


def _among_all(table: Table, rule: Rule) -> Table:
    """The table's choice for a rule's communicators without hierarchy; empty if it has none."""
    of_collective = table.get(f"collective={rule.method.lower()}", {})
    return reached(of_collective.get("comm_type=intra", {}), rule.ranks, "any")


def _ruled(table: Table, rules: Sequence[Rule], chooses: Callable[[Rule], Table]) -> str:
    """The whole table with the rules inserted, as JSON.   chooses: returns a rule's choice."""
    table = {**table}
    leaders, inside = (by_method(_parts(rules, part)) for part in range(2))
    for method, among_all in by_method(rules).items():
        key = f"collective={method.lower()}"
        default, chosen = table[key]["comm_type=intra"], Table()
        size = "total_msg_size" if method in _TOTAL else "avg_msg_size"
        parts = leaders.get(method, {}), inside.get(method, {})
        for ranks in sorted({*among_all, *parts[0], *parts[1]}):
            chosen.setdefault(f"comm_size<={ranks - 1}", default)
            some = among_all.get(ranks, [])
            flat = [rule for rule in some if not rule.composed]
            of_leaders, of_node = (part.get(ranks) for part in parts)
            serving = {"comm_hierarchy=parent": some}
            if of_node and not of_leaders:
                serving[_ONE_EACH] = flat
            serving["comm_hierarchy=any"] = of_leaders or of_node or flat
            below = Table()
            if len(flat) < len(some):
                below["comm_size=node_comm_size"] = default
            for test, these in serving.items():
                usual = reached(default, ranks, "parent" if test.endswith("parent") else "any")
                below[test] = _by_size(size, these, usual, chooses)
            chosen[f"comm_size<={ranks}"] = below
        chosen["comm_size=any"] = default
        table[key] = {**table[key], "comm_type=intra": chosen}
    return json.dumps(table, indent=1) + "\n"


def _parts(rules: Sequence[Rule], part: int) -> list[Rule]:
    """The rules of compositions, for the ranks of one part: 0 for leaders, 1 for a node's ranks."""
    return [rule._replace(ranks=nodes[part]) for rule in rules if (nodes := _nodes(rule))]


def reached(table: Table, ranks: int, hierarchy: str) -> Table:
    """The part of a table that serves communicators of `ranks` ranks, without tests of them.

    hierarchy: "parent" if the library splits these communicators by nodes, else "any".
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
    """Whether a test of a communicator holds; False for a test of anything else."""
    if match := re.fullmatch(r"comm_size(<=?)(\d+)", test):
        return ranks < int(match[2]) + (match[1] == "<=")
    holding = ["comm_size=any", f"comm_hierarchy={hierarchy}", "comm_hierarchy=any"]
    return test in holding or (test == "comm_size=pow2" and ranks & (ranks - 1) == 0)


def _by_size(
    size: str, rules: Sequence[Rule], default: Table | str, chooses: Callable[[Rule], Table]
) -> Table:
    """A table that chooses by size.   size: the name of its tests.   default: where no rule is."""
    chosen = Table()
    for rule in rules:
        if rule.first:
            chosen.setdefault(f"{size}<={rule.first - 1}", default)
        chosen[f"{size}<={rule.last}"] = _guarded(rule, chooses(rule), default)
    return {**chosen, f"{size}=any": default}


def _algorithm(rule: Rule) -> Table:
    name = f"{rule.method}_intra_{rule.name}"
    parameters = _PARAMETERS.get(name, "").format_map(rule.settings).split()
    return {f"algorithm=MPIR_{name}": {one: {} for one in parameters}}


def _guarded(rule: Rule, chosen: Table, default: Table | str) -> Table:
    """`chosen` where the rule's algorithm is right for operator and count; else `default`."""
    if rule.method in ("Bcast", "Allgather", "Allgatherv"):
        return chosen
    if _SPLITTING.search(rule.name) and rule.method in ("Allreduce", "Reduce"):
        enough = {"count<pow2": default, "count=any": chosen}
        chosen = {"is_op_built_in=yes": enough, "is_op_built_in=no": default}
    return {"is_commutative=yes": chosen, "is_commutative=no": default}


def named_tables(rules: Sequence[Rule], library: Installed) -> dict[str, str]:
    """The file from MPICH 5.1 on without its comments: the named tables of methods with rules."""
    own, file = _table(library, '{"name='), Table()
    for method, by_ranks in by_method(rules).items():
        name, default = _NAME.format(method.lower()), f"call=collwise-usual-{method.lower()}"
        chosen, size = Table(), "total_msg_size" if method in _TOTAL else "avg_msg_size"
        for ranks, some in by_ranks.items():
            here: Table = _by_size(size, some, default, _algorithm)
            nodes = _NODES.fullmatch(max(rule.ranks_per_node for rule in some))
            if nodes and "local_node_size" in library.accepted:
                fewer = f"local_node_size<={int(nodes[2]) - 1}"
                here = {fewer: default, f"local_node_size<={nodes[2]}": here, "any": default}
                if nodes[1] != "1":
                    here = {"node_regular": here, "any": default}
            chosen.setdefault(f"comm_size<={ranks - 1}", default)
            chosen[f"comm_size<={ranks}"] = here
        file |= {name: {**chosen, "any": default}, default.replace("call=", "name="): own[name]}
    text = re.sub(r'"\w+=(any|no)"', '"any"', json.dumps(file, indent=1) + "\n")
    return {"": re.sub(r'"([^"]+)"', lambda word: f'"{_NEWER.get(word[1], word[1])}"', text)}


def undoing(rules: Sequence[Rule]) -> dict[str, str]:
    """The variables that undo what a job forces, since the library prefers that to files."""
    among_all = by_method(_composed(rules))
    return {
        **{f"MPIR_CVAR_{one.upper()}_INTRA_ALGORITHM": "auto" for one in by_method(rules)},
        **{f"MPIR_CVAR_{one.upper()}_COMPOSITION": "0" for one in among_all},
    }


def variables(rules: Sequence[Rule], path: str) -> dict[str, str]:
    """The environment variables that put the files in force."""
    files = {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": path}
    if _composed(rules):
        files["MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"] = f"{path}{_COMPOSITIONS}"
    return files | undoing(rules)


_WHOLE = RuleFormat(
    "MPICH",
    (4,),
    (5, 1),
    why_not,
    bodies,
    "// {}\n",
    variables,
    clash=clash,
    undoing=undoing,
    cannot_say=(
        "roots: a rule counts for every root, and was raced with root 0",
        "nodes: a rule from one rank on each node, or from one node, counts for both",
        "how many ranks the nodes of a composition's leaders have",
    ),
    not_raced=(
        "k other than the library's own and 4",
        "types of trees other than kary (Bcast) and knomial_1 (Allreduce): choices at launch",
        "chunk sizes, single_phase_recv, is_non_blocking, recv_pre_posted and buffer_per_child"
        " other than the library's own: races had those",
        "compositions other than the library's own and the one among all ranks",
        "the algorithms in the shared memory of a node: they follow other variables",
    ),
)
_NAMED = _WHOLE._replace(
    below=(6,),
    bodies=named_tables,
    variables=lambda rules, path: {"MPIR_CVAR_COLL_SELECTION_JSON_FILE": path, **undoing(rules)},
    cannot_say=(_WHOLE.cannot_say[0], "nodes: none are told if those of ranks are not consecutive"),
    counters=("MPIR_CVAR_DUMP_COLL_ALGO_COUNTERS", r"(\d+)\s+MPIR_{}_intra_{}\s"),
)
FORMAT = _WHOLE._replace(newer=_NAMED)
