"""Builds a profile from a measurement: exact fractions become floats with units, plus a verdict."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from collwise.measure.fit import Fit
from collwise.measure.level_campaign import LevelMeasurements
from collwise.measure.port_campaign import port_times
from collwise.measure.size_campaign import Measurement
from collwise.measure.stability import judge, judge_point
from collwise.model.exact import seconds
from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import Profile, with_measurements
from collwise.profiles.records import (
    MODES,
    CombineTime,
    MeasuredLevel,
    MeasuredSize,
    Measurements,
    Provenance,
    ReadTime,
)


def build_profile(
    measurement: Measurement,
    fingerprint: Fingerprint,
    provenance: Provenance,
    combining: Iterable[CombineTime] = (),
    reading: Iterable[ReadTime] = (),
) -> Profile:
    """The profile of the machine with this fingerprint, from a measurement.

    provenance: describes this session; ranks, seed, budget_s and elapsed_s are taken
    from the measurement instead.
    combining, reading: the times of combining, and of reading shared memory; empty if they were not
    measured.
    """
    made = msgspec.structs.replace(
        provenance,
        ranks=measurement.ranks,
        seed=measurement.seed,
        budget_s=measurement.budget_s,
        elapsed_s=measurement.elapsed_s,
    )
    points = tuple(map(_point, measurement.fits, measurement.segments))
    cores = made.usable_cores or fingerprint.cores_per_node
    unreached, asked = measurement.unreached, measurement.asked
    judgement = judge(points, made, cores, unreached, asked=asked)
    measurements = Measurements(
        verdict=judgement.verdict,
        advice=judgement.advice,
        provenance=made,
        points=points,
        medians=measurement.medians,
        combining=tuple(combining),
        reading=tuple(reading),
    )
    return Profile(fingerprint=fingerprint, measurements=measurements)


def with_levels(
    profile: Profile,
    measured: LevelMeasurements,
    names: Sequence[str],
    groups: Mapping[str, tuple[int, ...]],
    budget_s: float,
) -> Profile:
    """Add the measurements of the inner levels to the profile of the outermost level.

    names: words for the groups of each inner level.   groups: maps a host to its group at each
    level beyond nodes.   budget_s: seconds for all levels.
    """
    points = [tuple(map(_point, level.fits, level.segments)) for level in measured.inner]
    levels = [
        MeasuredLevel(name=name, ranks=level.ranks, points=own, port=port_times(port, around, own))
        for name, level, own, port, around in zip(
            names,
            measured.inner,
            points,
            measured.ports,
            [*points[1:], profile.points],
            strict=True,
        )
    ]
    made = msgspec.structs.replace(
        profile.provenance,
        ranks=sum(profile.provenance.hosts.values()),
        budget_s=budget_s,
        elapsed_s=sum(level.elapsed_s for level in (*measured.inner, measured.outermost)),
    )
    return with_measurements(profile, provenance=made, levels=tuple(levels), groups=dict(groups))


def _point(fit: Fit, segment: int) -> MeasuredSize:
    first, second = fit.experiments
    point = MeasuredSize(
        nbytes=fit.nbytes,
        mode=MODES[fit.blocking],
        t0_s=seconds(fit.cost.gap),
        lam=float(fit.cost.lam),
        t0_interval_s=fit.t0_interval_s,
        lam_interval=fit.lam_interval,
        t0_experiments_s=(first and seconds(first.gap), second and seconds(second.gap)),
        lam_experiments=(first and float(first.lam), second and float(second.lam)),
        disagreement=None if fit.disagreement is None else float(fit.disagreement),
        repetitions=fit.repetitions,
        segment=segment,
        verdict="",
        fitted=fit.fitted,
    )
    return msgspec.structs.replace(point, verdict=judge_point(point))
