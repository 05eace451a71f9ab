"""Reduces by halving on any number of ranks."""

import pytest

import collwise as cw
from collwise.algorithms import ALGORITHMS
from collwise.algorithms.search import settings_to_try
from collwise.model.machine import Machine

GATHER = ALGORITHMS["reduce/circulant_gather"]
SLOW = Machine.hockney(alpha_s="1e-6", beta_s="1e-9", gamma_s="1e-7")
"""Combining takes long."""


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("ranks", "nbytes", "alpha_s", "beta_s", "gamma_s"),
    [
        (5, 262160, "67.3e-6", "0", "2.747e-9"),
        (7, 4144, "1.268e-3", "3.055e-9", "4.66e-6"),
        (65, 1040, "23.9e-6", "0.921e-9", "180.9e-9"),
    ],
)
def test_one_rank_less_takes_no_longer(
    ranks: int, nbytes: int, alpha_s: str, beta_s: str, gamma_s: str
) -> None:
    """All of these did."""
    machine = Machine.hockney(alpha_s=alpha_s, beta_s=beta_s, gamma_s=gamma_s)
    less, more = (
        cw.plan("reduce", ranks=p, nbytes=nbytes, machine=machine) for p in (ranks, ranks + 1)
    )
    assert less.algorithm == GATHER.name
    assert less.choice.predicted <= more.choice.predicted


def test_two_to_the_d_ranks_halve_as_in_a_cube() -> None:
    halving = ALGORITHMS["reduce/halving_gather"]
    for p in (4, 8, 32):
        time = GATHER.predict(SLOW, p, 8 * p, itemsize=8, stages="2d", latency=1)
        assert time == halving.predict(SLOW, p, 8 * p, itemsize=8)
        hybrid = ALGORITHMS["reduce/hybrid"]
        strategy = (0,) + (1,) * (p.bit_length() - 2)
        time = GATHER.predict(
            SLOW, p, 8 * p, itemsize=8, stages="2d " * len(strategy[1:]) + "2", latency=1
        )
        assert time == hybrid.predict(SLOW, p, 8 * p, itemsize=8, strategy=strategy)


def test_where_it_is_tried() -> None:
    free = Machine.hockney(alpha_s="1e-6", beta_s="1e-9")
    for ranks, nbytes, machine, tried in (
        (2, 64, SLOW, 0), (32, 64, SLOW, 0),
        (3, 64, SLOW, 1), (3, 8, SLOW, 0), (4097, 64, SLOW, 0), (9, 64, free, 0),
    ):  # fmt: skip
        problem = GATHER.problem(ranks, nbytes, itemsize=8)
        assert len(list(settings_to_try(GATHER, problem, machine))) == tried
    no_start = Machine.hockney(alpha_s=0, beta_s=0, gamma_s="1e-7")
    (settings,) = settings_to_try(GATHER, GATHER.problem(9, 64, itemsize=8), no_start)
    assert settings["latency"] == 1
