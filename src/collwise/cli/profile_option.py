"""Options about profiles, shared by commands."""

import os
from collections.abc import Callable
from pathlib import Path

import click

from collwise.cli.parameter_types import FILE, OUTPUT, PLACEMENT, named_twice, unwritable
from collwise.errors import InvalidArgument
from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import ENVIRONMENT, Profile, is_profile
from collwise.profiles.store import chosen, default_path, find, folder
from collwise.report.tables import Saved
from collwise.system.files import read_input

profile_option = click.option(
    "--profile",
    "profile_path",
    type=FILE,
    help="Profile file to use  [default: the one saved for this machine].",
)

placement_option = click.option(
    "--placement",
    type=PLACEMENT,
    help="Where the ranks are, such as 2x4x16 (racks x nodes x ranks)  [default: nodes by MPI,"
    " groups of nodes by the times between them].",
)


def _can_be_saved(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Before measuring, refuse a file that cannot be written, or that is no profile."""
    remedy = "name another file" + f" in {ENVIRONMENT}" * (path is None)
    if named := path or chosen():
        trouble = unwritable(named) or holds_else(named) or named_twice(named, param, ctx)
    else:
        named = folder()
        above = next(one for one in (named, *named.parents) if one.exists())
        trouble = "" if os.access(above, os.W_OK | os.X_OK) else f"cannot be written ({above})"
        remedy = f"name a file here, or in {ENVIRONMENT}"
    if trouble:
        raise click.BadParameter(f"{named} {trouble}; {remedy}", ctx, param)
    return path


def holds_else(
    path: Path, alike: Callable[[bytes], bool] = is_profile, what: str = "profile"
) -> str:
    """Why a new profile must not replace a file; "" if the file is a profile, empty or new.

    alike, what: for a kind of file other than profiles, a test of its content, and its name.
    """
    try:
        content = read_input(path) if path.is_file() else b""
    except OSError as problem:
        return f"cannot be read: {problem.strerror}"
    return "" if not content.strip() or alike(content) else f"is there and is no {what}"


save_option = click.option(
    "--save",
    "save_path",
    type=OUTPUT,
    callback=_can_be_saved,
    help="Where to save the profile  [default: beside others, by machine].",
)


def save(profile: Profile, path: Path | None) -> Saved:
    """Merge a profile into a file: `path`, or by default COLLWISE_PROFILE's or its machine's."""
    from collwise.tuning.saving import save_merged  # imported late: it loads the algorithms

    if (named := path or chosen()) and (trouble := holds_else(named)):
        remedy = f"name another file with --save, or in {ENVIRONMENT}"
        raise InvalidArgument(f"save the profile as {named}", f"it {trouble}", remedy)
    path = named or default_path(profile.fingerprint)
    try:
        merged = save_merged(profile, path)
    except InvalidArgument as problem:
        raise InvalidArgument(
            problem.asked, problem.seen, f"name another file with --save, or in {ENVIRONMENT}"
        ) from problem
    document = {"profile_path": str(path), "saved": merged.document}
    return Saved([f"profile  {path}", *merged.lines], document)


def profile_for(fingerprint: Fingerprint, path: Path | None) -> Profile | None:
    """The profile in `path`, by default the saved one of this machine; None if none is saved.

    Raises ForeignProfile if it is another machine's, DamagedProfile if it cannot be read.
    """
    if path is None:
        return find(fingerprint)
    profile = Profile.load(path)
    profile.check(fingerprint)
    return profile
