"""Files of rules for MPI libraries, read again as the libraries read them."""

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from collwise.errors import InvalidArgument
from collwise.formats import intel_adjust, mpich_selection, openmpi_rules
from collwise.formats.selection_rules import Installed, Named, Rule

KNOWN = {
    "one": Named(3, {"chains": 4, "segment": 0}),
    "ring": Named(5),
    "tree": Named(6, {"k": 2, "segment": 0}),
}


def rule(method: str, ranks: int, first: int, last: int, name: str, **changed: int) -> Rule:
    named = KNOWN.get(name, Named(0))
    settings = {**named.settings, **changed}
    evidence = (f"raced with {first} bytes",)
    return Rule(
        "any", method, ranks, first, last, (first,), name, named.number, settings, changed, evidence
    )


RULES = [
    rule("Allreduce", 4, 128, 2048, "tree", k=8),
    rule("Allreduce", 4, 2049, 8192, "ring"),
    rule("Allreduce", 5, 0, 64, "ring"),
    rule("Allreduce", 9, 64, 256, "tree"),
    rule("Bcast", 4, 16, 64, "one", segment=32),
    rule("Reduce_scatter_block", 4, 64, 4096, "ring"),
]
SIZES = sorted({n + more for one in RULES for n in (one.first, one.last) for more in (-1, 0, 1)})


def wanted(method: str, ranks: int, nbytes: int) -> Rule | None:
    for one in RULES:
        if (one.method, one.ranks) == (method, ranks) and one.first <= nbytes <= one.last:
            return one
    return None


def test_the_comments_say_where_rules_are_from_and_what_is_missing() -> None:
    library = Installed("Open MPI 5.0.11")
    form = openmpi_rules.FORMAT._replace(not_raced=["another"])
    text = form.texts(RULES[:1], library, "So far.", ["a thing"])[""]
    assert text.splitlines()[:8] == [
        "# collwise export: rules for Open MPI 5.0.11, from races of blocking calls;"
        " another version may abort every program that is given this file",
        "# So far.",
        "# Allreduce of 128 to 2048 bytes on 4 ranks: tree(k=8)",
        "#   raced with 128 bytes",
        "# This file cannot say:",
        "#   a thing",
        "# No race tried:",
        "#   another",
    ]
    bare = form._replace(not_raced=[])
    assert "cannot" not in (text := bare.texts(RULES[:1], library, "So far.", [])[""])
    assert "tried" not in text


@pytest.mark.parametrize(
    ("form", "library", "reads"),
    [
        (openmpi_rules, "Open MPI 5.0.11", True),
        (openmpi_rules, "Open MPI 4.1.6", True),
        (openmpi_rules, "Open MPI 6.0.0", False),
        (openmpi_rules, "Open MPI 3.1.6", False),
        (openmpi_rules, "MPICH 5.0.2", False),
        (openmpi_rules, "", False),
        (mpich_selection, "MPICH 4.3.2", True),
        (mpich_selection, "MPICH 3.4.3", False),
        (intel_adjust, "Intel MPI 2021.13.0", True),
        (intel_adjust, "Intel MPI 2021.9.0", False),
    ],
)
def test_versions(form: Any, library: str, reads: bool) -> None:
    if reads:
        form.FORMAT.check(library)
    else:
        with pytest.raises(InvalidArgument, match=f"this is {library or 'no MPI library'}"):
            form.FORMAT.check(library)


def _openmpi(text: str) -> dict[int, list[tuple[int, list[tuple[int, ...]]]]]:
    """By number of collective: numbers of ranks with their lines."""
    words: Iterator[int] = map(int, re.sub(r"#.*", "", text).split())
    return {
        next(words): [
            (next(words), [tuple(next(words) for _ in range(4)) for _ in range(next(words))])
            for _ in range(next(words))
        ]
        for _ in range(next(words))
    }


def test_open_mpi_serves_what_rules_say_and_nothing_else() -> None:
    library = Installed("Open MPI 5.0.11", {"Allreduce": KNOWN, "Bcast": KNOWN})
    read = _openmpi(openmpi_rules.FORMAT.texts(RULES, library, "", [])[""])
    numbers = {"Allreduce": 2, "Bcast": 7, "Reduce_scatter_block": 13}
    assert list(read) == list(numbers.values())
    for method, number in numbers.items():
        assert [ranks for ranks, _ in read[number]] == sorted({r for r, _ in read[number]})
        for ranks in range(12):
            lines = [some for least, some in read[number] if least <= ranks][-1]
            assert lines[0][0] == 0, "else the library drops the file"
            for nbytes in SIZES[1:]:
                line = [one for one in lines if one[0] <= nbytes][-1]
                found = wanted(method, ranks, nbytes)
                if found is None:
                    assert line[1:] == (0, 0, 0)
                else:
                    settings = found.settings
                    fan = settings.get("chains", 0), settings.get("segment", 0)
                    assert line[1:] == (found.number, *fan)


ON_NODES = [one._replace(ranks_per_node="2x2") for one in RULES if one.ranks == 4]


def _han(text: str) -> dict[str, list[tuple[int, list[tuple[int, str]]]]]:
    """By collective: numbers of ranks, with sizes and the component that serves from there on."""
    words = iter(re.sub(r"#.*", "", text).split())
    read: dict[str, list[tuple[int, list[tuple[int, str]]]]] = {}
    for _ in range(int(next(words))):
        method = next(words)
        assert [next(words), next(words)] == ["1", "global_communicator"]
        read[method] = [
            (int(next(words)), [(int(next(words)), next(words)) for _ in range(int(next(words)))])
            for _ in range(int(next(words)))
        ]
    assert [*words] == []
    return read


def test_han_hands_to_tuned_what_rules_say_and_nothing_else() -> None:
    library = Installed("Open MPI 5.0.11")
    flat = rule("Allreduce", 6, 0, 64, "ring")
    texts = openmpi_rules.FORMAT.texts([*ON_NODES, flat], library, "", [])
    assert texts[".han"].startswith("# collwise export: rules for Open MPI 5.0.11")
    assert "Allreduce of 128 to 2048 bytes on 4 ranks (2x2): tree(k=8)" in texts[".han"]
    read = _han(texts[".han"])
    assert list(read) == ["allreduce", "bcast"], "HAN has no reduce_scatter_block"
    for method, lines in read.items():
        assert [least for least, _ in lines] == [1, 4, 5]
        for ranks in (1, 3, 4, 5, 6):
            sizes = [some for least, some in lines if least <= ranks][-1]
            assert sizes[0][0] == 0, "else the library drops the file"
            for nbytes in SIZES[1:]:
                served = [who for least, who in sizes if least <= nbytes][-1]
                found = wanted(method.capitalize(), ranks, nbytes)
                assert served == ("tuned" if found and ranks == 4 else "han")
    assert [*openmpi_rules.FORMAT.texts([flat], library, "", [])] == [""]
    told = openmpi_rules.FORMAT.variables(ON_NODES, "/x/rules")
    assert told["OMPI_MCA_coll_han_dynamic_rules_filename"] == "/x/rules.han"
    assert not any("han" in name for name in openmpi_rules.FORMAT.variables([flat], "rules"))


def test_what_open_mpi_cannot_say() -> None:
    calling = rule("Allreduce", 4, 8, 16, "nonoverlapping")
    assert openmpi_rules.why_not(calling, Installed("Open MPI 5.0.11")) == ""
    calling = calling._replace(ranks_per_node="2x2")
    assert "coll/han" in openmpi_rules.why_not(calling, Installed("Open MPI 5.0.11"))
    library = Installed("Open MPI 5.0.11")
    assert openmpi_rules.why_not(RULES[0], library) == "the file has no place for k"
    assert openmpi_rules.why_not(RULES[4], library) == ""


DEFAULT: dict[str, Any] = {
    "comm_size<8": {
        "comm_hierarchy=parent": {"algorithm=nodes": {}},
        "comm_hierarchy=any": {"avg_msg_size<=100": {"algorithm=a": {}}, "avg_msg_size=any": {
            "algorithm=b": {}}},
    },
    "comm_size=pow2": {"is_commutative=yes": {"algorithm=c": {}}, "is_commutative=no": {
        "algorithm=d": {}}},
    "comm_size=any": {"algorithm=e": {}},
}  # fmt: skip


def _mpich(table: dict[str, Any], asked: dict[str, Any], below: bool = False) -> list[str]:
    """What a table chooses, with its parameters; it must not test communicators below sizes."""
    for test, then in table.items():
        name, how, value = re.fullmatch(r"(\w+)(<=|<|=)(\w+)", test).groups()  # type: ignore[union-attr]
        if name in ("algorithm", "composition"):
            return [value, *then]
        assert not (below and name.startswith("comm_")), test
        known = asked[name.replace("total", "avg")]
        if value == "node_comm_size":
            holds = known == asked[value]
        elif name == "comm_hierarchy":
            holds = value in ("any", known)
        elif value in ("any", "pow2") and how == "=":
            holds = value == "any" or known & (known - 1) == 0
        elif isinstance(known, str):
            holds = known == value
        else:
            limit = 4 if value == "pow2" else int(value)
            holds = known <= limit - (how == "<")
        if holds:
            return _mpich(then, asked, below or "msg_size" in name)
    raise AssertionError((table, asked))


def test_mpich_serves_what_rules_say_and_its_own_table_elsewhere() -> None:
    collectives = ("bcast", "allreduce", "reduce_scatter_block", "barrier")
    table = {f"collective={one}": {"comm_type=intra": DEFAULT} for one in collectives}
    table["collective=x"] = {"algorithm=MPIR_Bcast_intra_binomial": {}}
    library = Installed("MPICH 5.0.2", tables=["{}", json.dumps(table)])
    text = mpich_selection.FORMAT.texts(RULES, library, "", [])[""]
    read = json.loads(re.sub("(?m)^//.*", "", text))
    assert list(read) == list(table)
    assert read["collective=barrier"] == table["collective=barrier"]
    usual = {"is_commutative": "yes", "is_op_built_in": "yes", "count": 100}
    for method in ("Bcast", "Allreduce", "Reduce_scatter_block"):
        chosen = read[f"collective={method.lower()}"]["comm_type=intra"]
        for ranks in (2, 3, 4, 5, 6, 8, 9, 10):
            for nbytes in SIZES[1:]:
                for hierarchy in ("parent", "none"):
                    asked = {"comm_size": ranks, "avg_msg_size": nbytes, **usual}
                    asked["comm_hierarchy"] = hierarchy
                    found, default = wanted(method, ranks, nbytes), _mpich(DEFAULT, asked)
                    said = _mpich(chosen, asked)
                    if found is None:
                        assert said == default, asked
                        continue
                    assert said[0] == f"MPIR_{method}_intra_{found.name}"
                    if method != "Bcast":
                        asked["is_commutative"] = "no"
                        assert _mpich(chosen, asked) == _mpich(DEFAULT, asked)
                    if (found.name, method) == ("ring", "Allreduce"):
                        for odd in ({"is_op_built_in": "no"}, {"count": 2}):
                            assert _mpich(chosen, {**asked, **usual, **odd}) == default
    asked = {"comm_size": 4, "avg_msg_size": 128, "comm_hierarchy": "none", **usual}
    tree = _mpich(read["collective=allreduce"]["comm_type=intra"], asked)
    assert tree[1:3] == ["tree_type=knomial_1", "k=8"]


COMPOSED: dict[str, Any] = {
    "comm_size=node_comm_size": {"algorithm=node": {}},
    "comm_size=any": {"comm_hierarchy=parent": {
        "is_commutative=yes": {"avg_msg_size<=100": {"algorithm=a": {}},
                               "avg_msg_size=any": {"algorithm=b": {}}},
        "is_commutative=no": {"algorithm=c": {}},
    }, "comm_hierarchy=any": {"composition=MPIDI_Allreduce_intra_composition_beta": {}}},
}  # fmt: skip


def test_mpich_composes_where_rules_say_so() -> None:
    plain = {"collective=allreduce": {"comm_type=intra": DEFAULT}, "collective=x": {
        "algorithm=MPIR_Bcast_intra_binomial": {}}}  # fmt: skip
    composing = {"collective=allreduce": {"comm_type=intra": COMPOSED}, "collective=y": {}}
    tables = [json.dumps(one) for one in (composing, plain)]
    accepted = ["MPIR_Allreduce_intra_tree", "MPIR_Reduce_intra_tree"]
    library = Installed("MPICH 5.0.2", tables=tables, accepted=accepted)
    asked = rule("Allreduce", 4, 128, 2048, "tree", composition=2)._replace(ranks_per_node="2x2")
    assert mpich_selection.why_not(asked, library) == ""
    for other in (
        asked._replace(settings={**asked.settings, "composition": 1}),
        asked._replace(method="Reduce"),
        asked._replace(settings={**asked.settings, "composition": 77}),
    ):
        assert "for no communicators" in mpich_selection.why_not(other, library)
    by_parts = asked._replace(settings={**asked.settings, "composition": 0}, changed={})
    assert mpich_selection.why_not(by_parts, library) == ""
    uneven = by_parts._replace(ranks_per_node="3+1")
    assert "different numbers" in mpich_selection.why_not(uneven, library)
    free = asked._replace(settings={"k": 2}, changed={})
    assert mpich_selection.why_not(free, library) == "", "the library never composes it"
    texts = mpich_selection.FORMAT.texts([asked], library, "", [])
    read = {which: json.loads(re.sub("(?m)^//.*", "", text)) for which, text in texts.items()}
    beside = read[".compositions"]
    assert (list(beside), beside["collective=y"]) == (list(composing), {})
    told = mpich_selection.FORMAT.variables([asked], "rules")
    assert told["MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"] == "rules.compositions"
    assert told["MPIR_CVAR_ALLREDUCE_COMPOSITION"] == "0"
    assert len(mpich_selection.FORMAT.variables([free], "rules")) == 2
    for which, default, wins in (
        ("", DEFAULT, "MPIR_Allreduce_intra_tree"),
        (".compositions", COMPOSED, "beta"),
    ):
        chosen = read[which]["collective=allreduce"]["comm_type=intra"]
        for ranks, nbytes, hierarchy, node, commutes in product(
            (3, 4, 5), (100, 128, 2048, 2049), ("parent", "none"), (2, 4), ("yes", "no")
        ):
            call = {"comm_size": ranks, "avg_msg_size": nbytes, "comm_hierarchy": hierarchy,
                    "node_comm_size": node, "is_commutative": commutes}  # fmt: skip
            ruled = (ranks, hierarchy, node, commutes) == (4, "parent", 2, "yes")
            said, usual = _mpich(chosen, call), _mpich(default, call)
            if ruled and 128 <= nbytes <= 2048:
                assert said[0].endswith(wins)
            else:
                assert said == usual, (which, call)


BY_PARTS = rule("Allreduce", 12, 128, 2048, "tree")._replace(
    ranks_per_node="3x4", settings={"k": 2, "segment": 0, "composition": 0}
)
"""A rule whose algorithm ran among three leaders, and among the four ranks of each node."""


def test_mpichs_rules_for_the_parts_of_a_composition() -> None:
    """A part's communicator is not a parent, and its ranks on each node are not what they were."""
    every = {"collective=allreduce": {"comm_type=intra": DEFAULT}, "collective=x": {
        "algorithm=MPIR_Bcast_intra_binomial": {}}}  # fmt: skip
    library = Installed("MPICH 5.0.2", tables=[json.dumps(every)])
    on_four = rule("Allreduce", 4, 64, 128, "tree", k=8)._replace(ranks_per_node="1x4")
    assert mpich_selection.clash(BY_PARTS, on_four) == ""
    texts = mpich_selection.FORMAT.texts([on_four, BY_PARTS], library, "", [])
    assert [*texts] == [""]
    read = json.loads(re.sub("(?m)^//.*", "", texts[""]))
    chosen = read["collective=allreduce"]["comm_type=intra"]
    for ranks, nbytes, hierarchy, each in product(
        (2, 3, 4, 5, 12, 13), (100, 128, 2048, 2049), ("parent", "none"), (1, 2, 4)
    ):
        call = {"comm_size": ranks, "avg_msg_size": nbytes, "comm_hierarchy": hierarchy,
                "comm_avg_ppn": each, "node_comm_size": 99, "is_commutative": "yes"}  # fmt: skip
        leaders = (ranks, hierarchy) == (3, "none")
        inside = (ranks, hierarchy) == (4, "none") and each > 1
        ruled = leaders or inside or (ranks, hierarchy) == (12, "parent")
        said = _mpich(chosen, call)
        direct = ranks == 4 and (hierarchy == "parent" or each == 1) and 64 <= nbytes <= 128
        if (ruled and 128 <= nbytes <= 2048) or direct:
            assert said[0] == "MPIR_Allreduce_intra_tree", call
            assert f"k={8 if direct else 2}" in said
        else:
            assert said == _mpich(DEFAULT, call), call


@pytest.mark.parametrize(
    ("ranks", "where", "clashes"),
    [
        (6, "3x2", True),  # as many leaders
        (8, "2x4", True),  # as many ranks on a node
        (10, "2x5", False),
        (3, "3x1", True),
        (3, "", True),
        (3, "1x3", False),
        (4, "", False),
        (12, "3x4", False),  # the same communicator: sizes are apart
    ],
)
def test_rules_that_mpich_cannot_have_beside_each_other(
    ranks: int, where: str, clashes: bool
) -> None:
    other = BY_PARTS._replace(ranks=ranks, ranks_per_node=where)
    for one, beside in ((BY_PARTS, other), (other, BY_PARTS)):
        told = mpich_selection.clash(one, beside)
        assert told == f"a rule for {beside.ranks} ranks stands in its place" * clashes
    assert mpich_selection.clash(BY_PARTS, other._replace(method="Bcast")) == ""
    among_all = other._replace(changed={"composition": 2}, ranks=3, ranks_per_node="3+1")
    assert mpich_selection.clash(BY_PARTS, among_all) == ""


def test_what_mpich_cannot_say() -> None:
    accepted = ["MPIR_Allreduce_intra_tree", "MPIR_Allreduce_intra_smp"]
    library = Installed("MPICH 5.0.2", accepted=accepted)
    assert mpich_selection.why_not(RULES[0], library) == ""
    assert mpich_selection.why_not(rule("Allreduce", 4, 8, 16, "tree", segment=64), library) == ""
    in_segments = rule("Bcast", 4, 8, 16, "tree", segment=64)
    known = library._replace(accepted=["MPIR_Bcast_intra_tree"])
    assert mpich_selection.why_not(in_segments, known) == "the file has no place for segment"
    for name in ("smp", "ring"):
        asked = rule("Allreduce", 4, 8, 16, name)
        assert mpich_selection.why_not(asked, library) == "the file cannot name it"
    with pytest.raises(InvalidArgument, match="whole table, which was not found"):
        mpich_selection.FORMAT.texts(RULES, library, "", [])


def test_intel_mpis_variables() -> None:
    library = Installed("Intel MPI 2021.18.1")
    on_nodes = rule("Bcast", 4, 8, 64, "17")._replace(ranks_per_node="2x2")
    assert intel_adjust.why_not(on_nodes, library) == "its variable does not see nodes"
    rules = [
        rule("Bcast", 4, 8, 64, "17"),
        rule("Bcast", 8, 65, 512, "3"),
        rule("Reduce", 4, 1, 2, "1"),
    ]
    assert [intel_adjust.why_not(one, library) for one in rules] == [""] * 3
    lines = intel_adjust.FORMAT.texts(rules, library, "", [])[""].splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'export I_MPI_ADJUST_BCAST="17:8-64@4-4;3:65-512@8-8"',
        'export I_MPI_ADJUST_REDUCE="1:1-2@4-4"',
    ]
    assert "no preset" in intel_adjust.why_not(RULES[0], library)
    assert "no preset" in intel_adjust.why_not(rule("Bcast", 4, 8, 64, "17", k=2), library)
    assert "not documented" in intel_adjust.why_not(RULES[-1], library)
