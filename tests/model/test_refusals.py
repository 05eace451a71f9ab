"""What the room refuses, and what it says of it: what was asked, what was seen, what to do."""

import pytest

from collwise.errors import CollwiseError, InvalidArgument, UnknownName
from collwise.model import hybrid, postal, sources, topology
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.placement import Placement

NAMES = {
    **vars(postal) | vars(hybrid) | vars(topology) | vars(sources),
    **{name: getattr(Machine, name) for name in ("postal", "hockney", "loggp", "levels")},
    **{name: getattr(Placement, name) for name in ("of", "of_members", "nodes", "regular")},
    "measured": measured,
    "Placement": Placement,
    "square": topology.Mesh(2, 2),
    "placed": Placement.regular(2, 3),
    "two": [Machine.postal(t0_s="1e-6", lam=2), Machine.postal(t0_s="4e-6", lam=5)],
    "cost": lambda items: 419 + 2 * items,
}
REFUSED = {
    # postal
    "reached(-1, 2)": "reached(t, lam): t = -1; t is a time in t0, at least 0",
    "reached(1, '1/1025')": (
        "the latency lam: lam = 1/1025; lam is in units of t0 and at least 1/1024"
    ),
    "broadcast_time(8, 0)": "the latency lam: lam = 0; lam is in units of t0 and at least",
    "broadcast_time(0, 2)": "broadcast_time(n, lam): n = 0; give an integer of at least 1",
    "growth(0.5)": "the latency lam: lam = 1/2; lam is in units of t0",
    "scaling(0)": "the latency lam: lam = 0; lam is in units of t0",
    "break_even(0)": "break_even(k): k = 0; give an integer of at least 1",
    "growth(float('inf'))": "the latency lam: inf; give a finite number",
    "reached(float('nan'), 2)": "the time t: nan; give a finite number",
    "split(8, 0.4)": "split(n, alpha): alpha = 2/5; give an alpha in [1/2, 1)",
    "split(1, 0.5)": "split(n, alpha): n = 1; give an integer of at least 2",
    "split(8, float('nan'))": "the ratio alpha: nan; give a finite number, such as 9/5 or 1.8",
    "partitions(1, 2)": "partitions(n, lam): n = 1; give an integer of at least 2",
    "alpha_range(1, 2)": "alpha_range(n, lam): n = 1; give an integer of at least 2",
    "alpha_intersection(1, 2)": "alpha_intersection(n, lam): n = 1; give an integer of at",
    "corners(1, 2)": "corners(n, lam): n = 1; give an integer of at least 2",
    "alpha_table(0, 2)": "alpha_table(n, lam): n = 0; give an integer of at least 1",
    "alpha_table(14, 2).lookup(22)": (
        "AlphaTable.lookup(n): n = 22 in a table for up to 21; call alpha_table(n, lam) for at"
        " least as many ranks"
    ),
    "alpha_table(1, 2).lookup(2)": "AlphaTable.lookup(n): n = 2 in a table for up to 1; call",
    "alpha_table(14, 2).lookup(1)": "AlphaTable.lookup(n): n = 1; give an integer of at",
    "asymptotic_corners(0.9)": "the latency lam: lam = 9/10; lam is in units of t0 and at least 1",
    "greedy_tree(0, 2)": "greedy_tree(n, lam): n = 0; give an integer of at least 1",
    "doubling(0, 2)": "doubling(n, lam): n = 0; give an integer of at least 1",
    "doubling(16, 2).edges(22)": (
        "GradedTree.edges(n): n = 22 for grades up to 21 ranks; call doubling(n, lam) for at"
        " least as many ranks"
    ),
    "doubling(16, 2).edges(0)": "GradedTree.edges(n): n = 0; give an integer of at least 1",
    "tree_time(lambda m: 1, 0, 2)": "tree_time(split_rule, n, lam): n = 0; give an integer",
    "tree_time(lambda m: m, 8, 2)": (
        "tree_time(split_rule, n, lam): split_rule(8) = 8; give an integer from 1 to 7"
    ),
    "greedy_tree(8, 0)": "the latency lam: lam = 0; lam is in units of t0 and at least",
    "partitions(8, 0.5)": "the latency lam: lam = 1/2; lam is in units of t0 and at least",
    "deficiencies(8, '5/2')": (
        "deficiencies(n, lam): lam = 5/2; the census is made for an integer latency: give 2"
        " (delay-send) or 3 (delay-receive)"
    ),
    "census_rounds(8, 1.8)": "census_rounds(n, lam): lam = 9/5; the census is made for an",
    "deficiencies(0, 2)": "deficiencies(n, lam): n = 0; give an integer of at least 1",
    "deficiencies(8, 0)": "the latency lam: lam = 0; lam is in units of t0 and at least 1",
    "census_time(8, 0, 2)": "census_time(n, k, lam): k = 0; give an integer of at least 1",
    "census_time(0, 2, 2)": "census_time(n, k, lam): n = 0; give an integer of at least 1",
    "delay_receive_time(0, 2)": "delay_receive_time(n, lam): n = 0; give an integer of at",
    "delay_send_time(8, '1/2')": "the latency lam: lam = 1/2; lam is in units of t0 and",
    "delay_send_growth(float('nan'))": "the latency lam: nan; give a finite number, such",
    "census_time(1 << 63, 1 << 31, 1)": "a census: 9223372036854775808 ranks at",
    "deficiencies(2, 10**9)": "a census: 2 ranks at λ = 1000000000 take 1000000000 rounds;",
    # hybrid
    "checked_strategy((0, 1), 3)": (
        "a hybrid strategy: 2 choices for 3 directions; 8 ranks are a cube of dimension 3: give"
        " S_0 … S_(d−1)"
    ),
    "checked_strategy(5, 2)": "a hybrid strategy: it is 5; give S_0 … S_(d−1), such as (0, 1)",
    "time((0, 2), 8, 1, 1, 1)": (
        "a hybrid strategy: S_1 = 2; give 1 where vectors are halved, 0 where they are exchanged"
        " whole"
    ),
    "time('01', 8, 1, 1, 1)": "a hybrid strategy: S_0 = '0'; give 1 where vectors are",
    "time((0, 1), 8, -1, 1, 1)": "alpha: alpha = -1; give a number of 0 or more",
    "best(8, 3, 1, -0.5, 1)": "beta: beta = -0.5; give a number of 0 or more",
    "version3(8, 3, 1, 1, float('nan'))": "gamma: nan; give a finite number, such as 9/5",
    "corollary4(8, 3, float('inf'), 1, 1)": "alpha: inf; give a finite number, such as",
    "version1(-8, 3, 1, 1, 1)": "nitems: nitems = -8; give a number of 0 or more",
    "version2(8, -1, 1, 1, 1)": "the dimensions of a cube: d = -1; give an integer from 0 to 1024",
    "best_for(cost, cost, -1, 3)": "nitems: nitems = -1; give an integer of at least 0",
    "time_for((0, 1), cost, cost, 2.5)": "nitems: nitems = 2.5; give an integer of at",
    "best_for(lambda m: 3 - m, cost, 8, 1)": "cost(8): cost(8) = -5; give a number of 0",
    "time_for((1,), cost, lambda m: float('nan'), 8)": "combine(8): nan; give a finite",
    "short_message_rule(8, 3, 1, 1, 1, short=-1)": "short: short = -1; give an integer of",
    "short_message_rule(8, 3, -1, 1, 1)": "alpha: alpha = -1; give a number of 0 or more",
    # machine
    "postal(t0_s=0, lam=2)": "a machine's t0_s: 0 is not above 0; give a time above 0, in seconds",
    "postal(t0_s=1, lam='1/2')": (
        "the latency λ of a postal machine: λ = 1/2; give λ >= 1: a message cannot arrive"
    ),
    "postal(t0_s=1, lam=float('nan'))": "lam: nan; give a finite number",
    "postal(t0_s='soon', lam=1)": "t0_s: 'soon'; give a finite number",
    "hockney(alpha_s=-1, beta_s=0)": (
        "a machine's alpha_s: -1 is below 0; give a time of 0 or more, in seconds"
    ),
    "hockney(alpha_s=1, beta_s=-1)": "a machine's beta_s: -1 is below 0; give a time of 0",
    "hockney(alpha_s=1, beta_s=1, gamma_s=-1)": "a machine's gamma_s: -1 is below 0; give",
    "loggp(L_s=-1, o_s=0, g_s=0, G_s=0)": "a machine's L_s: -1 is below 0; give a time",
    "loggp(L_s=0, o_s=-1, g_s=0, G_s=0)": "a machine's o_s: -1 is below 0; give a time",
    "loggp(L_s=0, o_s=0, g_s=-1, G_s=0)": "a machine's g_s: -1 is below 0; give a time",
    "loggp(L_s=0, o_s=0, g_s=0, G_s=-1)": "a machine's G_s: -1 is below 0; give a time",
    "measured([])": "a measured machine: sizes []; give sizes in ascending order",
    "measured([[(8, 1, 1), (8, 1, 1)]])": "a measured machine: sizes [8, 8]; give",
    "measured([[(8, 1, 1)], [(4, 1, 1)]])": "a measured machine: sizes [8, 4]; give",
    "measured([[(8, 0, 1)]])": "a machine's t0_s: 0 is not above 0; give a time above 0",
    "measured([[(8, 1, 'x')]])": "lam: 'x'; give a finite number",
    "measured([[(8, 1, 2)]]).with_combining([(8, -1)])": "a machine's time_s: -1 is below 0; give",
    # levels
    "levels('ab', placed)": "a machine with levels: laws = 'ab'; give a list, one for each level",
    "levels(two, placed, ports=[[8]])": "a machine with levels: a port = a list; give seconds, or",
    "levels([], placed)": "a machine with levels: it has no levels; give a law for each, the",
    "levels(two[:1], placed)": "a machine with levels: the placement has 2 levels, the machine",
    "levels(two, '2x3')": "a machine with levels: placement = '2x3'; give a collwise.Placement,",
    "levels(two, placed, ports=[1, 2])": "a machine with levels: 2 ports, and 1 level whose",
    "levels(two, placed, names=['a', 'b'])": "a machine with levels: 2 names; give 1, one per",
    "levels(two, placed, names=[5])": "a machine with levels: a kind of group is called 5; give",
    "levels(two, placed, names=['a\\nb'])": "a machine with levels: a kind of group is called 'a",
    "levels(two, placed, ports=[-1])": "a machine's port: -1 is below 0; give a time of 0 or",
    "levels(two, placed, ports=[[(8, 2), (9, 1)]])": (
        "a machine with levels: a port's times at [8, 9] bytes; give ascending sizes, and times"
        " that never fall"
    ),
    "levels([two[0], 'fast'], placed)": "a machine with levels: the machine is 'fast'; give a",
    # placement
    "of('ab', 'x')": "a placement of ranks: level 2 has 1 ranks, and there are 2;",
    "of('aab', 'xyy')": (
        "a placement of ranks: groups overlap: rank 1 shares a group of level 1 with rank 0, but"
        " not one of level 2;"
    ),
    "of()": "a placement of ranks: p = None;",
    "of_members([[]], 2)": "a placement of ranks: level 1 has no members;",
    "of_members([[[0, 1], []]], 2)": "a placement of ranks: group 1 of level 1 has no members;",
    "of_members([[[0, 1], [1]]], 2)": (
        "a placement of ranks: groups overlap: rank 1 is in two of level 1;"
    ),
    "of_members([[[0], [2]]], 3)": "a placement of ranks: rank 1 is in no group of level 1;",
    "of_members([[[0], [3]]], 3)": "a placement of ranks: a rank = 3;",
    "nodes([2, 0])": "a placement of ranks: a node has no ranks;",
    "nodes([2, 2], [0])": "a placement of ranks: a number of groups = 0;",
    "nodes(5)": "a placement of ranks: the nodes = 5;",
    "of(5)": "a placement of ranks: level 1 = 5;",
    "of([[0], [1]])": "a placement of ranks: a label of level 1 cannot be compared;",
    "of_members([[0, 1]], 2)": "a placement of ranks: group 0 of level 1 = 0;",
    "of_members([[[0]]], 10**30)": (
        "a placement of ranks: 1000000000000000000000000000000 ranks are too many;"
    ),
    "Placement(3, ((0, 0),))": "a placement of ranks: a level does not have as many ranks;",
    "regular(2, 0)": "a placement of ranks: a number of groups or ranks = 0;",
    "nodes([2, 1, 1], [2])": "a placement of ranks: 3 nodes are not 2 equal groups;",
    # topology
    "parse('meshes:4x4')": "topology 'meshes': there is none; did you mean mesh?",
    "parse('4x4')": "topology '4x4': there is none; known: complete, hypercube, mesh, torus",
    "parse('mesh')": "topology 'mesh': no sizes; write it as in mesh:16x16",
    "parse('mesh:4')": "topology 'mesh:4': 1 size; write it as in mesh:16x16",
    "parse('torus:4')": "topology 'torus:4': 1 size; write it as in torus:4x4x8",
    "parse('mesh:4x')": "topology 'mesh:4x': '' is no size; write it as",
    "parse('complete:' + '9' * 5000)": (
        "topology 'complete:9999999999999999999999999999999':"
        " '9999999999999999999999999999999999999999'"
    ),
    "parse('mesh:0x4')": "a mesh: rows = 0; give an integer of at least 1",
    "parse('mesh:4x-4')": "a mesh: columns = -4; give an integer of at least 1",
    "parse('hypercube:0')": "a hypercube: dimension = 0; give an integer from 1 to 31",
    "parse('hypercube:32')": "a hypercube: dimension = 32; give an integer from 1 to",
    "parse('mesh:65536x65536')": (
        "a mesh of 65536 × 65536: these are 4294967296 nodes; give at most 2147483648"
    ),
    "Complete(0)": "a complete graph: ranks = 0; give an integer of at least 1",
    "Hypercube(2.0)": "a hypercube: dimension = 2.0; give an integer from 1 to 31",
    "Mesh(2, '3')": "a mesh: columns = '3'; give an integer of at least 1",
    "Torus()": "a torus: it was given 0 sizes; give 2 or 3, such as Torus(4, 4, 8)",
    "Torus(4)": "a torus: it was given 1 sizes; give 2 or 3",
    "Torus(4, None)": "a torus: a size = None; give an integer of at least 1",
    "Embedded(square, ())": "ranks on a mesh of 2 × 2: no places are given; give a node",
    "Embedded(square, (0, 4))": "ranks on a mesh of 2 × 2: node = 4; give an integer from",
    "Embedded(square, (1, 3, 1))": (
        "ranks on a mesh of 2 × 2: ranks 0 and 2 are both on node 1; give each rank a node"
    ),
    "Embedded(square, (0, 3), (2,))": (
        "a mesh of 2 × 2 with 2 embedded ranks, seen as a mesh: shape = (2,); give (rows, col"
    ),
    "snake((0, 4))": "a mesh of ranks: rows = 0; give an integer of at least 1",
    "near_square(0)": "a mesh of ranks: ranks = 0; give an integer from 1 to 2147483648",
    # sources
    "distribute('row', (0, 3), 1)": "a mesh of ranks: rows = 0; give an integer of at least 1",
    "distribute('row', 9, 1)": "a mesh of ranks: shape = 9; give (rows, columns), such as",
    "distribute('row', (1, 2, 3), 1)": "a mesh of ranks: shape = (1, 2, 3); give (rows,",
    "distribute('row', (2, 3), 0)": "sources on a mesh of 2 × 3: count = 0; give an integer from",
    "distribute('row', (2, 3), 7)": "sources on a mesh of 2 × 3: count = 7; give an integer from",
    "rows_of((2, 3), 2, (2,))": "sources in rows of a mesh of 2 × 3: row = 2; give an integer",
    "rows_of((2, 3), 2, (1, 1))": "sources in rows of a mesh of 2 × 3: rows = [1, 1]; give each",
    "rows_of((2, 3), 4, (1,))": "sources in rows of a mesh of 2 × 3: count = 4; give an integer",
    "rows_of((2, 3), 1, 2)": "sources in rows of a mesh of 2 × 3: rows = 2; give a list of",
    "rows_of((2, 3), 1, ())": "sources in rows of a mesh of 2 × 3: no rows are given; name",
    "checked((), 4)": "sources among 4 ranks: none are given; give at least one rank",
    "checked((1, 3, 1), 4)": "sources among 4 ranks: rank 1 is given twice; give each source",
    "checked((1, 4), 4)": "sources among 4 ranks: a source = 4; give an integer from 0 to 3",
    "checked('12', 4)": "sources among 4 ranks: a source = '1'; give an integer from 0 to 3",
    "checked(2, 4)": "sources among 4 ranks: sources = 2; give a list of ranks",
    "checked((0,), 0)": "sources: ranks = 0; give an integer of at least 1",
    "picture((2, 2), (4,))": "sources among 4 ranks: a source = 4; give an integer from 0 to 3",
    "distribute('rows', (4, 4), 4)": "source distribution 'rows': there is none; did you mean row",
    "distribute('diagonal', (4, 4), 4)": (
        "source distribution 'diagonal': there is none; did you mean left_diagonal, right_"
    ),
}


@pytest.mark.parametrize("call", REFUSED)
def test_errors_say_what_was_asked_what_was_seen_what_to_do(call: str) -> None:
    with pytest.raises(CollwiseError) as caught:
        eval(call, NAMES)
    assert str(caught.value).startswith(REFUSED[call])
    assert caught.type is (UnknownName if ": there is none; " in REFUSED[call] else InvalidArgument)
