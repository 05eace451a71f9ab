"""Grids of races: the summary, the rows and the page say what the cells say."""

import msgspec

from collwise.report.grid_tables import cells_table, grid_page, summary
from collwise.tuning.grid_results import GridCell, LibraryResult

RESULT = LibraryResult(
    default="library",
    default_s=2e-3,
    own="broadcast/library:tree (blocking)",
    own_s=1.5e-3,
    ours="broadcast/postal_tree(lam=4)",
    ours_s=1e-3,
    predicted_s=0.8e-3,
    lower_bound_s=0.7e-3,
    t0_s=1e-4,
    lam=4.0,
    repetitions=20,
    launches=1,
)
CELL = GridCell(
    network="slow",
    placement="4x2",
    emulated=True,
    collective="broadcast",
    ranks=8,
    nbytes=4096,
    libraries={"one": RESULT, "other": msgspec.structs.replace(RESULT, ours_s=3e-3)},
    speedup_over_better_default=2.0,
    speedup_over_better_default_interval=(1.9, 2.1),
    speedup_over_best_own=1.5,
    speedup_over_best_own_interval=None,
)
LOST = msgspec.structs.replace(
    CELL,
    network="here",
    emulated=False,
    collective="reduce_scatter_block sum",
    speedup_over_better_default=0.5,
    speedup_over_better_default_interval=(0.4, 0.6),
)


def test_a_row_has_the_fastest_of_all_libraries() -> None:
    (row,) = cells_table("", [CELL]).rows
    assert row["ours"] == "1.00 ms"
    assert row["predicted"] == "800 µs"
    assert row["over default"] == "2.00 (1.90 … 2.10)"
    assert row["over best own"] == "1.50 (unknown)"
    assert row["algorithm"] == "postal_tree(lam=4)"


def test_the_summary_tells_networks_and_memory_apart() -> None:
    networks, memory, *models = summary([CELL, CELL, LOST])
    assert networks.startswith("networks 2.00× as fast as the better default, 1.50× as the best")
    assert networks.endswith("(geometric means of 2 cells); 0 clearly lost")
    assert memory.startswith("memory   0.50× as fast")
    assert memory.endswith("1 clearly lost")
    for model, count, where in zip(models, (4, 2), ("1.25", "in memory"), strict=True):
        assert f"50% of {count} by at most a factor of 1.25" in model
        assert model.endswith(where)


def test_the_summary_counts_predictions_apart_where_cores_or_packets_set_the_times() -> None:
    busy = {"cores_busy": 0.4, "ours_s": 8e-3}
    enough = msgspec.structs.replace(RESULT, **busy)
    assert not enough.limited
    crowded = msgspec.structs.replace(RESULT, **busy, latency_s=5e-3)  # busy as soon as it can be
    late = msgspec.structs.replace(RESULT, late=0.6, ours_s=8e-3)
    cell = msgspec.structs.replace(CELL, libraries={"one": RESULT, "b": crowded, "c": late})
    *_, quiet, limited = summary([cell])
    assert "off by 25.0% in the median; 100% of 1 by" in quiet
    assert "off by 900.0% in the median; 0% of 2 by" in limited
    assert limited.endswith("where the lab's cores were the limit")


def test_the_page_has_every_map_and_what_was_lost() -> None:
    page = grid_page("A grid", [CELL, LOST], 7)
    assert "2 of 7 cells raced." in page
    assert page.count("<svg") == 4
    assert page.index("Clearly lost") < page.index("Measured over the lower bound")
    assert "reduce_scatter_block sum" in page
