"""Heat maps: every ratio stands in its field, and its colour says whether it is good."""

from typing import Any

import numpy as np

from collwise.figures.heat_map import MAX_FIELDS, heat_map


def test_every_ratio_stands_in_its_field() -> None:
    ratios = {("a", "x"): 2.0, ("b", "x"): 0.5, ("b", "y"): 1.0}
    for good, sign in ((True, 1), (False, -1)):
        axes = heat_map(["a", "b"], ["x", "y"], ratios, good=good).axes[0]
        drawn: np.ma.MaskedArray[Any, Any] = np.ma.asarray(
            axes.collections[0].get_array(), dtype=float
        )
        values = drawn.filled(np.nan)
        assert values[0, 0] == sign * 0.5
        assert values[1].tolist() == [-sign * 0.5, 0.0]
        assert np.isnan(values[0, 1])
        written = {text.get_position(): text.get_text() for text in axes.texts}
        assert written == {(0.5, 0.5): "2.00", (0.5, 1.5): "0.50", (1.5, 1.5): "1.00"}
        low, high = axes.get_ylim()
        assert low > high  # the first row is at the top


def test_what_cannot_be_drawn_says_so() -> None:
    for rows in ([], [str(n) for n in range(MAX_FIELDS + 1)]):
        (text,) = heat_map(rows, ["x"], {}).texts
        assert "nothing that can be drawn" in text.get_text()
