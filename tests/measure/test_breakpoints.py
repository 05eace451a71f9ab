"""Where the protocol changes is found from the numbers alone."""

from random import Random

import pytest

from collwise.measure.breakpoints import CurvePoint, find_segments
from collwise.measure.size_campaign import SIZES


def _curve(
    law: dict[int, tuple[float, float]], noise: float = 0, seed: int = 0
) -> list[CurvePoint]:
    """law: from this size on, (start-up, per byte), in seconds."""
    random = Random(seed)
    points = []
    for nbytes in SIZES:
        start, slope = law[max(limit for limit in law if limit <= nbytes)]
        value = (start + slope * nbytes) * random.lognormvariate(0, noise)
        points.append(CurvePoint(nbytes, value, noise))
    return points


@pytest.mark.parametrize("law", [(1e-6, 0.0), (1e-6, 1e-9), (0.0, 1e-9), (5e-4, 8e-8)])
@pytest.mark.parametrize("noise", [0, 0.01])
def test_a_straight_line_is_one_segment(law: tuple[float, float], noise: float) -> None:
    for seed in range(20):
        assert set(find_segments(_curve({0: law}, noise, seed))) == {0}


@pytest.mark.parametrize("limit", [2048, 4096, 16384, 65536, 262144])
@pytest.mark.parametrize("noise", [0, 0.01])
def test_a_jump_is_found_where_it_is(limit: int, noise: float) -> None:
    for seed in range(10):
        beyond = (6e-6 + limit * 3e-10, 1e-10)
        curve = _curve({0: (1e-6, 2e-10), limit: beyond}, noise, seed)
        assert find_segments(curve) == [int(size >= limit) for size in SIZES]


def test_two_jumps() -> None:
    law = {0: (1e-6, 1e-10), 4096: (4e-6, 1e-10), 65536: (4e-5, 1e-10)}
    expected = [(size >= 4096) + (size >= 65536) for size in SIZES]
    assert find_segments(_curve(law)) == expected


def test_a_jump_in_one_curve_only_is_a_switch() -> None:
    flat = _curve({0: (1e-6, 2e-10)})
    jump = _curve({0: (2e-6, 2e-10), 16384: (2e-5, 2e-10)})
    expected = [int(size >= 16384) for size in SIZES]
    assert find_segments(flat, jump) == find_segments(jump, flat) == expected


def test_a_change_of_slope_is_a_switch() -> None:
    """Beyond the eager limit a copy is saved: no jump, but another slope."""
    limit = 32768
    law = {0: (1e-6, 1e-9), limit: (1e-6 + limit * 0.9e-9, 1e-10)}
    assert find_segments(_curve(law))[-1] == 1


def test_one_odd_size_is_no_switch() -> None:
    curve = _curve({0: (1e-6, 1e-10)})
    curve[6] = curve[6]._replace(value=curve[6].value * 3)
    assert set(find_segments(curve)) == {0}


def test_doubt_hides_a_small_jump() -> None:
    law = {0: (1e-6, 0.0), 8192: (1.3e-6, 0.0)}
    certain = _curve(law)
    doubtful = [point._replace(error=0.2) for point in certain]
    assert find_segments(certain)[-1] == 1
    assert find_segments(doubtful)[-1] == 0


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_sizes_are_one_segment(count: int) -> None:
    curve = [CurvePoint(2**i, 10.0**i) for i in range(count)]
    assert find_segments(curve) == [0] * count
