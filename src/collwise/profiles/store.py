"""The files of profiles: one for each kind of machine, unless COLLWISE_PROFILE names one."""

import hashlib
import logging
import os
import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

import msgspec
import platformdirs

from collwise.errors import CollwiseError, DamagedProfile, InvalidArgument
from collwise.profiles.fingerprint import Fingerprint
from collwise.profiles.profile import ENVIRONMENT, Profile
from collwise.profiles.records import RaceResult
from collwise.system.files import decode_json, locked, read_input, refusing
from collwise.system.formatting import count

log = logging.getLogger("collwise")


def folder() -> Path:
    """The folder of saved profiles, one file for each kind of machine.

    Raises InvalidArgument for a user without a home directory.
    """
    try:
        return platformdirs.user_data_path("collwise", appauthor=False).expanduser() / "profiles"
    except RuntimeError as problem:
        remedy = f"name a profile's file in {ENVIRONMENT}, or set HOME"
        raise InvalidArgument("the folder of profiles", str(problem), remedy) from None


def chosen() -> Path | None:
    """The file that COLLWISE_PROFILE names; None if this variable is not set, or empty."""
    path = os.environ.get(ENVIRONMENT)
    return Path(os.path.expanduser(path)) if path else None  # noqa: PTH111 - never raises


def saved() -> list[Path]:
    """All profile files of this user, the oldest first, or the file that COLLWISE_PROFILE names."""
    if path := chosen():
        return [path]
    return sorted(folder().glob("*.json"), key=lambda path: path.stat().st_mtime)


def named(name: str | None) -> Path:
    """The saved profile's file that `name` means: a path, or the beginning of a file's name.

    name: None means the only saved profile.   Raises InvalidArgument unless one file matches.
    """
    every = saved()
    if name is not None and os.path.isfile(name):  # noqa: PTH113 - never raises
        return Path(name)
    matches = [path for path in every if path.stem.startswith(name or "")]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join(path.stem for path in matches or every) or "none"
    seen = f"{len(matches)} saved profiles match" if matches else "no saved profile matches"
    raise InvalidArgument(
        f"the profile {name}" if name else "a profile",
        f"{seen} (saved: {listed})",
        "give a file, or the beginning of a name that `collwise wisdom list` shows",
    )


class _Owned(msgspec.Struct):
    fingerprint: Fingerprint


def of_this_machine(vendor: str = "") -> tuple[Path, str]:
    """The file of the profile to plan with by default, and a remark if several would do.

    vendor: consider only profiles measured with this MPI library, such as "Open MPI".
    If COLLWISE_PROFILE is set, the file is the one that it names.  Otherwise the file is the newest
    profile of this machine (on emulated hosts: of their network).   Raises DamagedProfile if this
    machine has no profile.
    """
    every = saved()
    if chosen():
        return every[0], ""
    fitting = [path for path in every if _fits(path, vendor)]
    if not fitting:
        elsewhere = f"; {count(len(every), 'other profile')} saved" if every else ""
        raise DamagedProfile(
            "the saved profile of this machine",
            f"there is none in {folder()}{elsewhere}",
            "run `collwise tune` or `collwise measure`, name a --profile, or describe a machine by"
            " its parameters",
        )
    *others, last = fitting
    remark = f"{len(fitting)} profiles are of this machine; {last.stem}, saved last, counts"
    return last, f"{remark}: --profile names another, collwise wisdom list" if others else ""


def _fits(path: Path, vendor: str) -> bool:
    try:
        owned = decode_json(read_input(path), _Owned)
    except (OSError, ValueError):  # damaged; msgspec's errors are ValueErrors
        return False
    return owned.fingerprint.mpi_library.startswith(vendor) and owned.fingerprint.is_here


def default_path(fingerprint: Fingerprint) -> Path:
    """The file for a profile with this fingerprint, or the one that COLLWISE_PROFILE names."""
    if path := chosen():
        return path
    library = re.sub(r"[^a-z0-9.]+", "-", fingerprint.mpi_library.lower()).strip("-")[:40]
    # msgspec leaves out a default only if it is the very same object.
    facts = {f.name: getattr(fingerprint, f.name) for f in msgspec.structs.fields(fingerprint)}
    defaults = {f.name: f.default for f in msgspec.structs.fields(fingerprint)}
    told = {name: value for name, value in facts.items() if value != defaults[name]}
    digest = hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:12]
    layout = fingerprint.layout.replace(" ", "-")
    inside = "memory-" * (fingerprint.transport == "memory")
    return folder() / f"{library}-{layout}-{inside}{digest}.json"


def add_learned(fingerprint: Fingerprint, results: Iterable[RaceResult]) -> None:
    """Add results that programs learned to the saved profile with this fingerprint, if any.

    A learned result never replaces the result of a race.  Raises InvalidArgument if the file cannot
    be written, DamagedProfile or ForeignProfile if the profile cannot be used.
    """
    path = default_path(fingerprint)
    with refusing(f"save what was learned in {path}", "see to it"), locked(path):
        if (profile := find(fingerprint)) is not None:
            raced = {race.key for race in profile.race_results if not race.learned}
            fresh = [result for result in results if result.key not in raced]
            profile.with_race_results(fresh).save(path)


def find(fingerprint: Fingerprint) -> Profile | None:
    """The saved profile of a machine with this fingerprint, or an older one without a network.

    None if there is none.  Raises DamagedProfile if the file cannot be read, or COLLWISE_PROFILE
    names a file that does not exist, and ForeignProfile if the profile is another machine's.
    """
    try:
        path = default_path(fingerprint)
    except InvalidArgument as problem:  # as in a container whose system does not know the user
        log.info("no saved profile: %s", problem)
        return None
    try:
        missing = not path.exists()
    except OSError:
        missing = False  # something is there; `load` says what is wrong with it
    if not missing:
        profile = Profile.load(path)
        profile.check(fingerprint)
        return profile
    if chosen():
        remedy = f"correct {ENVIRONMENT}, or make the file: collwise tune"
        raise DamagedProfile(f"read the profile {path}", "there is no such file", remedy)
    if not fingerprint.network:
        return None
    older = find(msgspec.structs.replace(fingerprint, network=""))  # from before they had networks
    if older is not None:
        log.warning("the profile %s does not say of which network; tune again", path)
    return older


def transport_of(named: object) -> str:
    """What carried data inside nodes when a profile was measured; empty without such a profile.

    named: a profile or its file; None and True stand for the one that COLLWISE_PROFILE names.
    """
    profile = chosen() if named is None or named is True else named
    if isinstance(profile, str | PathLike):
        try:
            profile = Profile.load(profile)
        except CollwiseError:  # who uses it says what is wrong with it
            return ""
    return profile.fingerprint.transport if isinstance(profile, Profile) else ""


def loaded(profile: object) -> Profile:
    """Read the profile in the file with the name `profile`.

    Raises InvalidArgument for anything but a name, DamagedProfile unless the file holds a profile.
    """
    if isinstance(profile, str | PathLike):
        return Profile.load(profile)
    raise InvalidArgument(
        "a communicator with a profile",
        f"profile = {profile!r}",
        "give a collwise.Profile, the name of its file, None or False",
    )
