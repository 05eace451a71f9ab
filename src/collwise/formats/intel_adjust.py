"""Intel MPI's I_MPI_ADJUST_* variables, as lines for a shell.

The variables name algorithms by number.  Since version 2021.13 these numbers are those of presets,
which mean nothing in another version.  So a rule needs a winner named by number: library:17.  Once
a variable is set, its conditions leave no other size or number of ranks to the default: with
2021.18.1 the trees of broadcasts outside of them differ from those without the variable.
"""

from collections.abc import Sequence

from collwise.formats.selection_rules import Installed, Rule, RuleFormat, by_method


def why_not(rule: Rule, library: Installed) -> str:
    """Why the variables cannot express a rule; empty if they can."""
    if rule.method not in ("Bcast", "Reduce", "Allreduce"):
        return "which sizes its variable means is not documented"
    if rule.composed:
        return "its variable does not see nodes"
    return "it is no preset with a number" * (not rule.name.isdecimal() or bool(rule.changed))


def bodies(rules: Sequence[Rule], library: Installed) -> dict[str, str]:
    """The one file, without its comments, by the suffix "" of its path."""
    lines = (f'export {name}="{value}"\n' for name, value in variables(rules, "").items())
    return {"": "".join(lines)}


def variables(rules: Sequence[Rule], path: str) -> dict[str, str]:
    """The variables that hold the rules, by name.   path: not used."""
    return {
        f"I_MPI_ADJUST_{method.upper()}": ";".join(
            f"{rule.name}:{rule.first}-{rule.last}@{ranks}-{ranks}"
            for ranks, some in by_ranks.items()
            for rule in some
        )
        for method, by_ranks in by_method(rules).items()
    }


FORMAT = RuleFormat(
    "Intel MPI",
    (2021, 13),
    (2100,),
    why_not,
    bodies,
    "# {}\n",
    variables,
    cannot_say=(
        "that the default serves everything else: once a collective's variable is set, Intel MPI"
        " 2021.18.1 serves its other sizes and numbers of ranks by another preset than without it",
        "roots and operators: a rule counts for every one, and was raced with root 0 and a sum",
        "nodes: a rule counts for as many ranks, wherever they lie",
    ),
    not_raced=("anything but presets, each in launches of its own",),
)
