"""Options about machines and profiles, shared by commands."""

import os
from pathlib import Path
from typing import Any

import click

from collwise.cli.values import writable
from collwise.errors import InvalidArgument
from collwise.model.fingerprint import Fingerprint
from collwise.model.machine import Machine
from collwise.model.profile import ENVIRONMENT, Profile, default_path, find, newest

profile_option = click.option(
    "--profile",
    "profile_path",
    type=click.Path(path_type=Path),
    help="Profile file to use  [default: the one saved for this machine].",
)


def _can_be_saved(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that cannot be written, --save's or the environment's, before measuring."""
    if path is None and (named := os.environ.get(ENVIRONMENT)):
        remedy = f"name another file in {ENVIRONMENT}"
        writable(ctx, param, Path(named).expanduser(), remedy=remedy)
    return writable(ctx, param, path)


save_option = click.option(
    "--save",
    "save_path",
    type=click.Path(path_type=Path),
    callback=_can_be_saved,
    help="Where to save the profile  [default: beside others, by machine].",
)


def save(profile: Profile, path: Path | None) -> Path:
    """Save a profile where asked, or where it will be found again."""
    try:
        return profile.save(path or default_path(profile.fingerprint))
    except InvalidArgument as problem:
        raise InvalidArgument(
            problem.asked, problem.seen, f"name another file with --save, or in {ENVIRONMENT}"
        ) from problem


def profile_for(fingerprint: Fingerprint, path: Path | None) -> Profile | None:
    """The profile of a file, or the one saved here; ForeignProfile if it is another machine's."""
    if path is None:
        return find(fingerprint)
    profile = Profile.load(path)
    profile.check(fingerprint)
    return profile


def machine_from(
    options: dict[str, Any], profile_path: Path | None, combining: tuple[str, str]
) -> tuple[Machine, str]:
    """The machine that plan's options describe, and where it comes from.

    options: t0, lam, alpha, beta, gamma, latency, overhead, gap, per_byte (None where not given).
    combining: operator and type, whose measured times count.
    """
    kinds: dict[str, tuple[str, ...]] = {
        "postal": ("t0", "lam"),
        "hockney": ("alpha", "beta", "gamma"),
        "loggp": ("latency", "overhead", "gap", "per_byte"),
    }
    given = {k: [n for n in names if options.get(n) is not None] for k, names in kinds.items()}
    chosen = [kind for kind, names in given.items() if names]
    if len(chosen) > 1 or (chosen and profile_path is not None):
        names = [n for names in given.values() for n in names] + ["profile"] * bool(profile_path)
        seen = ", ".join(f"--{n.replace('_', '-')}" for n in names)
        raise InvalidArgument(
            "one machine to plan for", f"options of several ({seen})", "describe one machine only"
        )
    if not chosen:
        profile = Profile.load(profile_path) if profile_path else newest()
        origin = f"profile of {', '.join(list(profile.provenance.hosts)[:3])}"
        return profile.machine_combining(*combining), origin
    kind = chosen[0]
    missing = [n for n in kinds[kind] if n not in given[kind] and n != "gamma"]
    if missing:
        raise InvalidArgument(
            f"a {kind} machine",
            f"--{missing[0].replace('_', '-')} is missing",
            "give " + ", ".join(f"--{n.replace('_', '-')}" for n in kinds[kind]),
        )
    o = options
    if kind == "postal":
        return Machine.postal(t0_s=o["t0"], lam=o["lam"]), "given"
    if kind == "hockney":
        gamma = o["gamma"] or 0
        return Machine.hockney(alpha_s=o["alpha"], beta_s=o["beta"], gamma_s=gamma), "given"
    return Machine.loggp(
        L_s=o["latency"], o_s=o["overhead"], g_s=o["gap"], G_s=o["per_byte"]
    ), "given"
