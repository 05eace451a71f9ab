"""Campaigns on simulated machines: what goes in comes out, and budgets are kept."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Literal

import pytest
from tests.simulator.noisy_prober import NoisyProber

from collwise.errors import InvalidArgument
from collwise.measure.combine_cost import MAX_REPETITIONS, MIN_REPETITIONS, CombineCampaign, slowest
from collwise.measure.fit import Seconds
from collwise.measure.probes import AnyProbe, Probe
from collwise.measure.size_campaign import SIZES, Measurement, SizeCampaign
from collwise.measure.stability import OPENING
from collwise.model.machine import Cost, Machine
from collwise.model.measured_machine import Measured, measured
from collwise.profiles.records import MedianTime
from collwise.simulator import SimulatedProber

LATENCIES = [Fraction(x) for x in ("1", "1.05", "4/3", "9/5", "2.5", "4", "10")]
FIVE_SIZES = (8, 512, 4096, 16384, 262144)
POSTAL = Machine.postal(t0_s="1.7e-6", lam=Fraction(9, 5))
Line = tuple[str, str]  # start-up in seconds, seconds per byte


def _piecewise(*pieces: tuple[int, int, Line, Line]) -> Measured:
    """A machine of straight pieces: from these bytes to those, t0 and λt0."""

    def row(nbytes: int, gap: Line, latency: Line) -> tuple[int, Fraction, Fraction]:
        t0, time = (Fraction(start) + nbytes * Fraction(slope) for start, slope in (gap, latency))
        return nbytes, t0, time / t0

    return measured(
        [row(first, gap, latency), row(last, gap, latency)] for first, last, gap, latency in pieces
    )


EAGER_LIMIT = _piecewise(
    (8, 16384, ("1e-6", "0.25e-9"), ("3e-6", "0.25e-9")),
    (32768, 1048576, ("12e-6", "0.1e-9"), ("14e-6", "0.125e-9")),
)


@dataclass(frozen=True)
class Delta(Machine):
    """The Intel Delta's shape: λ rises to 1.8 at its packet of 512 B; above, (λ−1)·t0 is constant.

    t0 = α + βm with β = 15α/8192, so that λ is 1.05 at 16 KB.  Source: [Bruck1996] §2.2, Fig 3, 4.
    """

    law = "postal"
    alpha: Fraction = Fraction(8192, 10**8)

    def message(self, nbytes: int) -> Cost:
        gap = self.alpha * (1 + Fraction(15 * nbytes, 8192))
        if nbytes >= 512:
            return Cost(gap, gap + self.alpha * Fraction(155, 100))
        return Cost(gap, gap * (Fraction(9, 5) - Fraction(512 - nbytes, 1000)))


def _conduct(machine: Machine, ranks: int, **options: object) -> Measurement:
    campaign = SizeCampaign(ranks, budget_s=1e6, **options)  # type: ignore[arg-type]
    return SimulatedProber(machine).conduct(campaign)


def _driven(campaign: SizeCampaign, prober: SimulatedProber) -> Iterator[list[Probe]]:
    """Conducts a campaign, and yields each batch when it is recorded."""
    while batch := campaign.next_batch():
        campaign.record(batch, prober.run(batch), prober.elapsed_s)
        yield batch


def _machine(measurement: Measurement, *, blocking: bool = False) -> Measured:
    """The machine as measured with one way of sending, exact."""
    segments: dict[int, list[tuple[int, Fraction, Fraction]]] = {}
    for segment, fit in zip(measurement.segments, measurement.fits, strict=True):
        if fit.blocking == blocking:
            segments.setdefault(segment, []).append((fit.nbytes, fit.cost.gap, fit.cost.lam))
    return measured(segments.values())


def _assert_exact(measurement: Measurement, machine: Machine) -> None:
    for fit in measurement.fits:
        cost = machine.message(fit.nbytes)
        assert fit.cost == cost
        assert fit.experiments == (fit.cost, fit.cost)
        assert fit.disagreement == 0
        assert fit.uncertainty == (0, 0)
    assert measurement.complete
    assert not measurement.unreached


@pytest.mark.parametrize(("ranks", "lam"), [*zip((2, 3, 4, 5, 8, 9, 100), LATENCIES, strict=True)])
def test_a_postal_machine_comes_back_exactly(ranks: int, lam: Fraction) -> None:
    machine = Machine.postal(t0_s="1.7e-6", lam=lam)
    measurement = _conduct(machine, ranks, sizes=FIVE_SIZES)
    _assert_exact(measurement, machine)
    assert set(measurement.segments) == {0}
    assert [(fit.nbytes, fit.blocking) for fit in measurement.fits] == [
        (nbytes, mode) for mode in (False, True) for nbytes in FIVE_SIZES
    ]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "machine",
    [
        Machine.hockney(alpha_s=525e-6, beta_s=0.5e-6),
        Machine.loggp(L_s=3e-6, o_s=1e-6, g_s=2e-6, G_s=1e-9),
        _piecewise((8, 1048576, ("5e-6", "0.5e-9"), ("2e-5", "1e-9"))),
        Delta(),
    ],
)
def test_machines_whose_cost_depends_on_the_size_come_back_exactly(machine: Machine) -> None:
    measurement = _conduct(machine, 9)
    _assert_exact(measurement, machine)
    for blocking in (False, True):
        rebuilt = _machine(measurement, blocking=blocking)
        assert rebuilt.sizes() == SIZES
        for nbytes in SIZES:
            assert rebuilt.message(nbytes) == machine.message(nbytes)


@pytest.mark.no_cover
def test_a_switch_at_the_eager_limit_is_found() -> None:
    measurement = _conduct(EAGER_LIMIT, 4)
    _assert_exact(measurement, EAGER_LIMIT)
    assert measurement.segments == tuple(int(nbytes > 16384) for nbytes in SIZES) * 2
    eager, rendezvous = _machine(measurement).segments
    assert (eager[-1].nbytes, rendezvous[0].nbytes) == (16384, 32768)
    for nbytes in (1, 100, 20000, 32767, 32768, 40000, 1 << 21):
        assert _machine(measurement).message(nbytes) == EAGER_LIMIT.message(nbytes)


def test_both_ways_of_sending_are_told_apart() -> None:
    slower = Machine.postal(t0_s="3e-6", lam=1)
    campaign = SizeCampaign(5, sizes=(8, 4096), budget_s=10)
    measurement = SimulatedProber(POSTAL, blocking=slower).conduct(campaign)
    assert _machine(measurement).message(8) == POSTAL.message(8)
    assert _machine(measurement, blocking=True).message(8) == slower.message(8)


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    ("machine", "distribution"),
    [(POSTAL, "uniform"), (EAGER_LIMIT, "lognormal"), (Delta(), "lognormal")],
)
def test_within_two_per_cent_with_five_per_cent_noise(
    machine: Machine, distribution: Literal["lognormal", "uniform"], seed: int
) -> None:
    prober = NoisyProber(machine, noise=0.05, distribution=distribution, seed=seed)
    sizes = (8, 4096, 262144)
    campaign = SizeCampaign(9, sizes=sizes, seed=seed, budget_s=1e6, modes=(False,))
    measurement = prober.conduct(campaign)
    assert measurement.complete
    for fit in measurement.fits:
        cost = machine.message(fit.nbytes)
        assert abs(fit.cost.gap / cost.gap - 1) < 0.02
        assert abs(fit.cost.lam / cost.lam - 1) < 0.02
        assert fit.uncertainty is not None
        assert max(fit.uncertainty) <= 0.01


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("budget_s", "noise", "overhead_s"),
    [(0.02, 0, 1e-4), (0.02, 0.3, 0), (0.1, 0, 0), (0.1, 0.3, 1e-4), (1, 0, 1e-4), (1, 0.3, 1e-4)],
)
def test_the_budget_is_kept(budget_s: float, noise: float, overhead_s: float) -> None:
    """Nothing is begun that does not fit, so what exceeds the budget is a matter of chance."""
    prober = NoisyProber(EAGER_LIMIT, noise=noise, overhead_s=overhead_s, seed=1)
    campaign = SizeCampaign(4, budget_s=budget_s)
    measurement = prober.conduct(campaign)
    assert measurement.elapsed_s == prober.elapsed_s <= 1.05 * budget_s
    reached = [nbytes for nbytes in SIZES if nbytes not in measurement.unreached]
    assert reached == list(SIZES[: len(reached)])
    assert {fit.nbytes for fit in measurement.fits} <= set(reached)
    if measurement.unreached or not measurement.complete:
        assert prober.elapsed_s > 0.5 * budget_s  # and it is used
    if noise:
        assert not measurement.complete


def test_the_smallest_size_is_measured_whatever_the_budget() -> None:
    measurement = SimulatedProber(POSTAL).conduct(SizeCampaign(4, budget_s=1e-9))
    assert {fit.nbytes for fit in measurement.fits} == {8}
    assert measurement.unreached == SIZES[1:]
    assert not measurement.complete
    assert min(m.repetitions for m in measurement.medians) >= OPENING


def test_sizes_far_apart_do_not_break_the_budget() -> None:
    network = Machine.hockney(alpha_s=1e-6, beta_s=8e-8)
    prober = SimulatedProber(network)
    measurement = prober.conduct(SizeCampaign(9, sizes=(8, 1 << 24), budget_s=1.0))
    assert measurement.unreached == (1 << 24,)
    scouting = 8 * network.message(1 << 24).gap  # four probes with one target, there and back
    assert prober.elapsed_s <= 1.0 + scouting


def test_a_stall_in_the_middle_of_a_round_ends_the_campaign() -> None:
    campaign = SizeCampaign(4, sizes=(8, 512), budget_s=0.02)
    prober = NoisyProber(POSTAL, noise=0.1)
    list(islice(_driven(campaign, prober), 5))  # greeting, two sizes
    batch = campaign.next_batch()  # the first part of a round
    campaign.record(batch, prober.run(batch), 0.1)
    assert campaign.next_batch() == []
    assert not campaign.result().complete


def test_what_is_known_is_left_alone() -> None:
    """Without noise every size is known after one round; with noise only the noisy go on."""
    measurement = _conduct(POSTAL, 9, sizes=FIVE_SIZES)
    counts = {m.repetitions for m in measurement.medians}
    assert len(counts) == 1
    assert 6 <= counts.pop() <= 10

    class Uneven(NoisyProber):
        def run(self, probes: Sequence[AnyProbe]) -> list[Seconds]:
            noisy = super().run(probes)
            quiet = SimulatedProber(POSTAL).run(probes)
            return [n if p.nbytes > 8 else q for p, n, q in zip(probes, noisy, quiet, strict=True)]

    uneven = Uneven(POSTAL, noise=0.02).conduct(SizeCampaign(9, sizes=(8, 512), budget_s=1e6))
    of = {m.nbytes: m.repetitions for m in uneven.medians}
    assert of[8] < 10 < of[512]


def test_long_messages_leave_time_for_short_ones() -> None:
    """A megabyte takes 800 times as long as a word: it has fewer targets and fewer repetitions."""
    network = Machine.hockney(alpha_s=1e-4, beta_s=8e-8)
    prober = NoisyProber(network, noise=0.1, overhead_s=1e-6)
    campaign = SizeCampaign(9, sizes=(8, 4096, 1 << 20), budget_s=20.0)
    of: dict[int, list[MedianTime]] = {}
    for median in prober.conduct(campaign).medians:
        of.setdefault(median.nbytes, []).append(median)
    assert {m.k for m in of[8]} == {m.k for m in of[4096]} == {1, 2, 4, 8}
    assert {m.k for m in of[1 << 20]} == {1, 2}
    fewest = {nbytes: min(m.repetitions for m in medians) for nbytes, medians in of.items()}
    assert fewest[1 << 20] >= OPENING
    assert min(fewest[8], fewest[4096]) >= 4 * fewest[1 << 20]


def test_short_messages_go_to_many_however_small_the_budget() -> None:
    """Their t0 is a small part of their time: with few targets it would drown in noise."""
    campaign = SizeCampaign(9, sizes=(8, 4096), budget_s=0.05)
    medians = SimulatedProber(Machine.postal(t0_s=1e-5, lam=10)).conduct(campaign).medians
    assert {(m.nbytes, m.k) for m in medians} == {(n, k) for n in (8, 4096) for k in (1, 2, 4, 8)}


def test_repetitions_have_a_limit() -> None:
    campaign = SizeCampaign(4, sizes=(8,), budget_s=1e6, repetitions=20)
    measurement = NoisyProber(POSTAL, noise=0.5).conduct(campaign)
    assert {m.repetitions for m in measurement.medians} == {20}
    assert not measurement.complete
    assert campaign.progress == 1


def test_batches_are_shuffled_and_targets_random() -> None:
    campaign = SizeCampaign(50, sizes=(8, 512), budget_s=1e6)
    batches = list(_driven(campaign, SimulatedProber(POSTAL)))
    assert campaign.next_batch() == []
    last = [probe.cell for probe in batches[-1]]
    assert last != sorted(last)
    probes = [probe for batch in batches for probe in batch]
    assert len({probe.targets for probe in probes}) > len(probes) / 2
    answering = Counter(probe.targets[-1] for probe in probes)
    assert set(answering) == set(range(1, 50))


def test_the_same_seed_gives_the_same_campaign() -> None:
    def probes(seed: int) -> list[Probe]:
        campaign = SizeCampaign(9, sizes=FIVE_SIZES, seed=seed)
        return [probe for batch in _driven(campaign, SimulatedProber(POSTAL)) for probe in batch]

    assert probes(1) == probes(1) != probes(2)


def test_progress_never_falls_and_ends_at_one() -> None:
    campaign = SizeCampaign(4, sizes=FIVE_SIZES, budget_s=0.2)
    prober = NoisyProber(POSTAL, noise=0.1, overhead_s=1e-5)
    seen = [campaign.progress, *(campaign.progress for _ in _driven(campaign, prober))]
    seen.append(campaign.progress)
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] == 1
    assert len(seen) > 10


def test_an_interrupted_campaign_has_a_result() -> None:
    campaign, prober = SizeCampaign(4), SimulatedProber(POSTAL)
    with pytest.raises(InvalidArgument, match=r"after 0 s .* give more time"):
        campaign.result()
    list(islice(_driven(campaign, prober), 5))  # greeting, two sizes
    measurement = campaign.result()
    assert [fit.nbytes for fit in measurement.fits] == [8, 32] * 2
    assert not measurement.complete
    assert measurement.unreached == SIZES[2:]


def test_a_size_without_a_slope_is_told_by_its_protocol() -> None:
    """512 bytes take a constant time: t0 lies near that of the other sizes, not of the next."""
    line = _piecewise((8, 65536, ("1e-6", "1e-9"), ("40e-6", "1e-9")))

    class OneLevel(SimulatedProber):
        def run(self, probes: Sequence[AnyProbe]) -> list[Seconds]:
            return [
                Fraction(81, 10**6) if p.nbytes == 512 else x
                for p, x in zip(probes, super().run(probes), strict=True)
            ]

    sizes = (8, 512, 4096, 65536)
    campaign = SizeCampaign(4, sizes=sizes, budget_s=1e6, repetitions=5)
    fits = OneLevel(line).conduct(campaign).fits
    assert [(fit.nbytes, fit.fitted) for fit in fits] == [(n, n == 512) for n in sizes] * 2
    fit = fits[1]
    t0 = line.message(512).gap
    assert fit.t0_interval_s is not None
    assert fit.t0_interval_s[0] < t0 < fit.t0_interval_s[1]
    assert t0 / 2 < fit.cost.gap < t0 * Fraction(3, 2)
    assert abs(fit.cost.latency / Fraction(40, 10**6) - 1) < 0.1


@pytest.mark.parametrize("seed", range(2))
def test_short_messages_whose_t0_drowns_in_their_latency(seed: int) -> None:
    """10 Mbit/s, 5 ms: 8 bytes keep the sender busy for 0.1 ms; it was taken for that of 2 KB."""
    network = _piecewise((8, 65536, ("1e-4", "8e-7"), ("51e-4", "8e-7")))
    prober = NoisyProber(network, noise=0.15, seed=seed)
    campaign = SizeCampaign(9, sizes=(8, 32, 128, 512, 2048, 8192), budget_s=1e6, repetitions=12)
    fits = [fit for fit in prober.conduct(campaign).fits if not fit.blocking]
    assert len(fits) == 6
    for fit in fits:
        cost = network.message(fit.nbytes)
        assert float(fit.cost.latency / cost.latency) == pytest.approx(1, abs=0.15)
        assert fit.cost.gap < 5 * cost.gap
        if fit.fitted:
            assert fit.t0_interval_s is not None
            assert fit.t0_interval_s[0] < cost.gap < fit.t0_interval_s[1]


class Loaded(SimulatedProber):
    """Nothing to be seen but noise until a moment comes; then times are those of the machine."""

    quiet_s = 0.013

    def run(self, probes: Sequence[AnyProbe]) -> list[Seconds]:
        loaded, exact = self.elapsed_s < self.quiet_s, super().run(probes)
        return [Fraction(1, 10**5 + len(exact) * i) if loaded else x for i, x in enumerate(exact)]


def test_a_budget_that_tells_nothing_is_exceeded() -> None:
    """Up to PATIENCE times, and only so far that the smallest size says something."""
    campaign = SizeCampaign(4, sizes=(8,), budget_s=0.01, repetitions=10**6)
    measurement = Loaded(POSTAL).conduct(campaign)
    assert Loaded.quiet_s < measurement.elapsed_s < 0.021
    assert not any(fit.fitted for fit in measurement.fits)


def test_a_noisy_machine_gets_a_noisy_result() -> None:
    """It got an error: no message size gave a time that grows with the number of messages."""
    prober = Loaded(POSTAL)
    prober.quiet_s = 1e9
    measurement = prober.conduct(SizeCampaign(4, sizes=(8, 512), budget_s=0.01))
    assert measurement.elapsed_s < 0.021
    assert [(fit.nbytes, fit.fitted) for fit in measurement.fits] == [(8, True), (512, True)] * 2
    assert all(fit.cost.gap > 0 and fit.cost.lam >= 1 for fit in measurement.fits)


def test_a_clock_that_stands_still_tells_nothing() -> None:
    class Stopped(NoisyProber):
        def run(self, probes: Sequence[AnyProbe]) -> list[Seconds]:
            return [0.0 * float(x) for x in super().run(probes)]

    with pytest.raises(InvalidArgument, match=r"no message size gave times"):
        Stopped(POSTAL, overhead_s=1e-3).conduct(SizeCampaign(4, sizes=(8, 512), budget_s=1))


def test_a_latency_below_one_is_kept_and_used_as_one() -> None:
    """LogGP with a large gap: the receiver has the message before the sender is free."""
    machine = Machine.loggp(L_s=1e-6, o_s=1e-6, g_s=6e-6, G_s=0)
    measurement = _conduct(machine, 9, sizes=FIVE_SIZES)
    assert {fit.cost.lam for fit in measurement.fits} == {Fraction(1, 2)}
    assert _machine(measurement).message(8).lam == 1


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({"ranks": 0}, r"measuring needs 2 ranks.*-n 9"),
        ({"ranks": 1}, r"measuring needs 2 ranks.*-n 9"),
        ({"budget_s": 0}, "time budget: 0 s"),
        ({"budget_s": float("nan")}, "time budget: nan s"),
        ({"budget_s": float("inf")}, "time budget: inf s"),
        ({"sizes": ()}, r"message sizes .*\[\]"),
        ({"sizes": (8, 0)}, r"message sizes .*\[8, 0\]"),
        ({"sizes": (8.5,)}, r"message sizes .*8\.5"),
    ],
)
def test_impossible_campaigns(options: dict[str, object], seen: str) -> None:
    with pytest.raises(InvalidArgument, match=seen):
        SizeCampaign(**({"ranks": 4} | options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("budget_s", "rounds"), [(1e-9, MIN_REPETITIONS), (20.5, 11), (1e9, MAX_REPETITIONS)]
)
def test_combining_is_timed_until_the_budget_ends(budget_s: float, rounds: int) -> None:
    """A round takes 2 seconds.  The slowest rank counts."""
    campaign, elapsed_s = CombineCampaign(budget_s), 0.0
    while batch := campaign.next_batch():
        elapsed_s += 2
        campaign.record(batch, [1e-9 * cell.nbytes for cell in batch], elapsed_s)
    assert campaign.progress == 1
    fast = campaign.result()
    slow = {cell: [2 * sample for sample in samples] for cell, samples in fast.items()}
    for time in slowest([fast, slow]):
        assert time.median_s == time.interval_s[0] == pytest.approx(2e-9 * time.nbytes)
        assert time.repetitions == rounds
