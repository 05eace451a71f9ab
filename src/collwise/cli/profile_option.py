"""Options about profiles, shared by commands."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collwise.cli.failures import tell_starter
from collwise.cli.parameter_types import FILE, OUTPUT, PLACEMENT, named_twice, unwritable
from collwise.errors import CollwiseError, InvalidArgument
from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import ENVIRONMENT, Profile, is_profile
from collwise.profiles.store import chosen, default_path, find, folder
from collwise.report.tables import Saved
from collwise.system.files import is_written_in_place, read_input
from collwise.system.formatting import count

if TYPE_CHECKING:  # it loads the algorithms
    from collwise.tuning.saving import Merged

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


class Keeper:
    """Saves a profile as it grows, so that a job that is ended keeps what it has decided.

    path: the file, by default COLLWISE_PROFILE's or the machine's.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.state = path, "nothing is measured yet"
        self._first: Merged | None = None
        self._saving = threading.Lock()

    def keep(self, profile: Profile) -> None:
        """Save what is decided so far; `save` raises what is wrong with the file in the end."""
        if (named := self.path or chosen()) is not None and is_written_in_place(named):
            return
        try:
            path = self.save(profile).document["profile_path"]
            races = count(len(profile.race_results), "result")
            self.state = f"t0, λ and {races} of races are saved in {path}"
        except CollwiseError as problem:
            self.state = f"nothing is saved: {problem}"
        tell_starter(self.state)

    def save(self, profile: Profile) -> Saved:
        """Save the whole profile; tell what became of what was there before its first part."""
        from collwise.tuning.saving import save_merged  # imported late: it loads the algorithms

        if (named := self.path or chosen()) and (trouble := holds_else(named)):
            remedy = f"name another file with --save, or in {ENVIRONMENT}"
            raise InvalidArgument(f"save the profile as {named}", f"it {trouble}", remedy)
        path = named or default_path(profile.fingerprint)
        try:
            with self._saving:
                merged = save_merged(profile, path, self._first)
        except InvalidArgument as problem:
            raise InvalidArgument(
                problem.asked, problem.seen, f"name another file with --save, or in {ENVIRONMENT}"
            ) from problem
        self._first = self._first or merged
        document = {"profile_path": str(path), "saved": merged.document}
        return Saved([f"profile  {path}", *merged.lines], document)

    def say(self) -> None:
        """Say what is saved, not before a file that is being written is whole, if it takes <5 s."""
        self._saving.acquire(timeout=5)
        click.echo(f"collwise: ended by SIGTERM; {self.state}", err=True)


def save(profile: Profile, path: Path | None) -> Saved:
    """Merge a profile into a file: `path`, or by default COLLWISE_PROFILE's or its machine's."""
    return Keeper(path).save(profile)


def profile_for(fingerprint: Fingerprint, path: Path | None) -> Profile | None:
    """The profile in `path`, by default the saved one of this machine; None if none is saved.

    Raises ForeignProfile if it is another machine's, DamagedProfile if it cannot be read.
    """
    if path is None:
        return find(fingerprint)
    profile = Profile.load(path)
    profile.check(fingerprint)
    return profile
