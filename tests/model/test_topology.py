"""Topologies: routes are paths of links, short ones, in the order that the papers say."""

import pickle
from collections import deque
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collwise as cw
from collwise.errors import InvalidArgument
from collwise.model.topology import (
    Complete,
    Embedded,
    Hypercube,
    Mesh,
    Topology,
    Torus,
    near_square,
    parse,
    snake,
    snake_position,
    snake_rank,
)

SMALL: tuple[Topology, ...] = (
    Complete(1),
    Complete(6),
    Hypercube(1),
    Hypercube(4),
    Mesh(1, 1),
    Mesh(1, 6),
    Mesh(4, 5),
    Torus(1, 1),
    Torus(2, 2),
    Torus(1, 7),
    Torus(4, 5),
    Torus(2, 3, 4),
    Torus(3, 1, 2),
)
EMBEDDED = Embedded(Torus(4, 5), [7, 0, 19, 3, 12, 6])


def neighbours(topology: Topology) -> dict[int, dict[int, int]]:
    """For each node, the nodes that a link leads to, and the link; found by asking every id."""
    found: dict[int, dict[int, int]] = {}
    for link in range(topology.links):
        try:
            start, end = topology.ends(link)
        except InvalidArgument:
            continue
        assert end not in found.setdefault(start, {}), "two links from one node to another"
        found[start][end] = link
    return found


def hops(graph: dict[int, dict[int, int]], source: int) -> dict[int, int]:
    """Breadth first, the distances that nobody can beat."""
    found, waiting = {source: 0}, deque([source])
    while waiting:
        node = waiting.popleft()
        for after in graph.get(node, {}):
            if after not in found:
                found[after] = found[node] + 1
                waiting.append(after)
    return found


def path(topology: Topology, source: int, target: int) -> list[int]:
    """The nodes of a route, which have to fit together."""
    ends = [topology.ends(link) for link in topology.route(source, target)]
    for (_, here), (there, _) in pairwise(ends):
        assert here == there
    return [start for start, _ in ends[:1]] + [end for _, end in ends]


@pytest.mark.parametrize("topology", SMALL, ids=repr)
def test_routes_are_shortest_paths(topology: Topology) -> None:
    graph = neighbours(topology)
    for source in range(topology.size):
        least = hops(graph, source)
        for target in range(topology.size):
            nodes = path(topology, source, target)
            assert nodes == [] if source == target else [nodes[0], nodes[-1]] == [source, target]
            route = topology.route(source, target)
            assert len(route) == topology.distance(source, target) == least[target]


# --- the order of a route ---


@given(st.integers(1, 12).flatmap(lambda d: st.tuples(st.just(d), *[st.integers(0, 2**d - 1)] * 2)))
def test_e_cube_mends_bits_from_the_lowest(case: tuple[int, int, int]) -> None:
    dimension, source, target = case
    nodes = path(Hypercube(dimension), source, target)
    bits = [a ^ b for a, b in pairwise(nodes)]
    assert bits == sorted(bits)
    assert sum(bits) == source ^ target


@given(st.data())
def test_xy_goes_along_the_row_first(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 30))
    ranks = st.integers(0, rows * columns - 1)
    source, target = data.draw(ranks), data.draw(ranks)
    (row, column), (to_row, to_column) = divmod(source, columns), divmod(target, columns)
    along = range(column, to_column, 1 if to_column > column else -1)
    across = range(row, to_row, 1 if to_row > row else -1)
    expected = [(row, c) for c in along] + [(r, to_column) for r in across] + [(to_row, to_column)]
    mesh = Mesh(rows, columns)
    nodes = path(mesh, source, target)
    assert [divmod(node, columns) for node in nodes] == (expected if source != target else [])
    # A torus twice as large has no shorter way round, and goes the same way.
    torus = Torus(2 * rows, 2 * columns)
    wide = [r * 2 * columns + c for r, c in expected]
    assert path(torus, wide[0], wide[-1]) == (wide if source != target else [])


def test_a_torus_takes_the_shorter_way_and_the_next_node_on_a_tie() -> None:
    ring = Torus(1, 6)
    assert path(ring, 1, 3) == [1, 2, 3]
    assert path(ring, 1, 5) == [1, 0, 5]
    assert path(ring, 1, 4) == [1, 2, 3, 4]
    assert path(ring, 4, 1) == [4, 5, 0, 1]
    box = Torus(4, 4, 8)  # (x, y, z) is x·32 + y·8 + z; z goes first
    assert path(box, 0, 3 * 32 + 2 * 8 + 7) == [0, 7, 15, 23, 119]


def test_two_nodes_have_one_link_each_way() -> None:
    torus, cube = Torus(2, 2, 2), Hypercube(3)
    for source, target in product(range(8), repeat=2):
        assert path(torus, source, target) == path(cube, source, target)


# --- ranks on nodes ---


def test_embedded_ranks_take_the_routes_of_their_nodes() -> None:
    places = EMBEDDED.places
    for source, target in product(range(6), repeat=2):
        route = EMBEDDED.route(source, target)
        assert route == Torus(4, 5).route(places[source], places[target])
        assert len(route) == EMBEDDED.distance(source, target)
        if source != target:
            nodes = path(EMBEDDED, source, target)
            assert (nodes[0], nodes[-1]) == (places[source], places[target])
    assert EMBEDDED.kind == "torus"
    assert (EMBEDDED.size, EMBEDDED.links) == (6, 80)
    assert EMBEDDED.describe() == "torus of 4 × 5 with 6 embedded ranks"
    assert Embedded(Mesh(2, 2), [3]).describe() == "mesh of 2 × 2 with 1 embedded rank"


def test_the_mesh_of_embedded_ranks() -> None:
    mesh = Mesh(2, 8)
    assert EMBEDDED.shape == (2, 3)
    assert Embedded(mesh, reversed(range(16))).shape == (2, 8)
    assert Embedded(mesh, [0, 1, 2, 8, 9, 10], (2, 3)).shape == (2, 3)
    assert Embedded(Embedded(mesh, [5, 4]), [1, 0]).route(0, 1) == mesh.route(4, 5)
    with pytest.raises(InvalidArgument, match="a mesh of 2 × 2 has 4; give rows and columns whose"):
        Embedded(mesh, range(6), (2, 2))


def test_ranks_along_the_snake_have_their_neighbours_beside_them() -> None:
    line = Embedded(Mesh(4, 5), snake((4, 5)))
    assert {line.distance(rank, rank + 1) for rank in range(19)} == {1}
    assert Mesh(4, 5).distance(4, 5) == 5


# --- what topologies are ---


@pytest.mark.parametrize(
    ("topology", "links", "kind", "shape", "text"),
    [
        (Complete(12), 132, "complete", (3, 4), "complete graph of 12"),
        (Hypercube(6), 384, "hypercube", (8, 8), "hypercube of dimension 6"),
        (Hypercube(5), 160, "hypercube", (4, 8), "hypercube of dimension 5"),
        (Mesh(4, 5), 2 * (4 * 4 + 3 * 5), "mesh", (4, 5), "mesh of 4 × 5"),
        (Mesh(1, 1), 0, "mesh", (1, 1), "mesh of 1 × 1"),
        (Torus(1, 7), 14, "torus", (1, 7), "torus of 1 × 7"),
        (Torus(30, 4), 480, "torus", (30, 4), "torus of 30 × 4"),
        (Torus(2, 2, 2), 24, "torus", (2, 4), "torus of 2 × 2 × 2"),
        (Torus(4, 4, 8), 768, "torus", (16, 8), "torus of 4 × 4 × 8"),
        (Torus(4, 4, 4), 384, "torus", (4, 16), "torus of 4 × 4 × 4"),
        (Torus(8, 2, 3), 48 * 5, "torus", (8, 6), "torus of 8 × 2 × 3"),
    ],
    ids=repr,
)
def test_facts(
    topology: Topology, links: int, kind: str, shape: tuple[int, int], text: str
) -> None:
    assert (topology.kind, topology.shape, topology.describe()) == (kind, shape, text)
    assert topology.size == shape[0] * shape[1]
    assert sum(map(len, neighbours(topology).values())) == links <= topology.links


@pytest.mark.parametrize("topology", [*SMALL, EMBEDDED], ids=repr)
def test_equal_topologies_hash_alike_and_travel(topology: Topology) -> None:
    again = pickle.loads(pickle.dumps(topology))
    assert again == topology
    assert hash(again) == hash(topology)
    assert topology.shape == again.shape
    assert eval(repr(topology)) == topology
    with pytest.raises(AttributeError):
        topology.size = 3  # type: ignore[misc]
    assert len({*SMALL, EMBEDDED, again}) == len(SMALL) + 1
    assert len({Mesh(4, 5), Torus(4, 5), Torus(1, 4, 5)}) == 3


def test_numpys_integers_become_pythons() -> None:
    mesh = Mesh(np.int64(4), np.int64(5))  # type: ignore[arg-type]
    assert type(mesh.rows) is type(mesh.columns) is int
    assert all(type(link) is int for link in mesh.route(0, 19))
    assert type(Hypercube(np.int32(3)).dimension) is int  # type: ignore[arg-type]
    assert {type(size) for size in Torus(np.int64(3), 2).sizes} == {int}  # type: ignore[arg-type]
    assert {type(node) for node in Embedded(mesh, np.array([3, 1])).places} == {int}


# --- orders ---


@given(st.integers(1, 5000))
def test_near_square(ranks: int) -> None:
    rows, columns = near_square(ranks)
    assert rows * columns == ranks
    pairs = [(r, ranks // r) for r in range(1, ranks + 1) if ranks % r == 0]
    assert columns - rows == min(c - r for r, c in pairs if r <= c)
    assert rows <= columns


@given(st.integers(1, 12), st.integers(1, 12))
def test_the_snake_visits_all_and_only_moves_to_neighbours(rows: int, columns: int) -> None:
    order = snake((rows, columns))
    assert sorted(order) == list(range(rows * columns))
    mesh = Mesh(rows, columns)
    assert {mesh.distance(a, b) for a, b in pairwise(order)} <= {1}
    assert order[:columns] == tuple(range(columns))
    for position, rank in enumerate(order):
        assert snake_rank(position, columns) == rank
        assert snake_position(rank, columns) == position
    positions = np.arange(rows * columns)
    assert snake_rank(positions, columns).tolist() == list(order)
    assert snake_position(np.array(order), columns).tolist() == positions.tolist()


# --- topologies as text, and what is refused ---


@pytest.mark.parametrize(
    ("text", "topology"),
    [
        ("mesh:16x16", Mesh(16, 16)),
        (" Mesh : 4 X 30 ", Mesh(4, 30)),
        ("mesh:4×5", Mesh(4, 5)),
        ("torus:4x4x8", Torus(4, 4, 8)),
        ("torus:3x5", Torus(3, 5)),
        ("hypercube:6", Hypercube(6)),
        ("hypercube:31", Hypercube(31)),
        ("complete:32", Complete(32)),
    ],
)
def test_parse(text: str, topology: Topology) -> None:
    assert parse(text) == topology == cw.topology.parse(text)


@pytest.mark.parametrize("topology", [*SMALL, EMBEDDED], ids=repr)
def test_ranks_and_links_out_of_range(topology: Topology) -> None:
    size = topology.size
    says = f"there are {size} .*; give ranks from 0 to {size - 1}"
    for source, target in ((0, size), (-1, 0), (size, size)):
        with pytest.raises(InvalidArgument, match=says):
            topology.route(source, target)
        with pytest.raises(InvalidArgument, match=says):
            topology.distance(source, target)
    for link in (-1, topology.links):
        with pytest.raises(InvalidArgument, match=f"the ends of link {link}: a .* no such link"):
            topology.ends(link)


def test_ids_without_a_link() -> None:
    for topology, link in ((Complete(3), 4), (Mesh(2, 2), 3), (Torus(2, 2), 1), (Torus(1, 3), 2)):
        with pytest.raises(InvalidArgument, match=f"the ends of link {link}: "):
            topology.ends(link)
