"""`collwise wisdom`: what was learned about machines, in the saved profiles."""

from pathlib import Path
from typing import Any

import click
import msgspec

from collwise.cli import output
from collwise.cli.parameter_types import COLLECTIVE, FILE, OUTPUT, RANKS
from collwise.cli.problem_options import ProblemOptions, bytes_option, problem_options
from collwise.cli.profile_option import save
from collwise.errors import InvalidArgument
from collwise.profiles.profile import Profile
from collwise.profiles.records import FORMS
from collwise.profiles.store import named, of_this_machine, saved
from collwise.system import formatting
from collwise.system.files import locked

name_argument = click.argument("name", required=False)


@click.group("wisdom")
def command() -> None:
    """Show, merge, pass on and forget what was learned: profiles and races.

    NAME is a file, or the beginning of a name that `list` shows; it may be left
    out where one profile is saved.  list, show and why take --json.
    """


@command.command("list")
@output.json_option
def list_(as_json: bool) -> None:
    """List the saved profiles, one for each machine.

    A machine is known by its processors, its MPI library and its layout of nodes.
    """
    from collwise.report.wisdom_tables import list_document, list_table

    documents = list_document(saved())
    if as_json:
        output.write_json({"profiles": documents})
    elif documents:
        output.table(list_table(documents))
    else:
        output.write("nothing is saved: run `collwise tune`")


@command.command()
@name_argument
@output.json_option
def show(name: str | None, as_json: bool) -> None:
    """Show a profile: t0 and λ, and all races."""
    from collwise.report.tuning_tables import measured_table
    from collwise.report.wisdom_tables import races_table

    path = named(name)
    profile = Profile.load(path)
    if as_json:
        output.write_json({"path": str(path), "profile": profile.to_document()})
        return
    output.table(measured_table(profile, f"t0 and λ, {profile.fingerprint.mpi_library}"))
    if profile.race_results:
        output.table(races_table(profile.race_results))
    output.write(f"profile  {path}", f"verdict  {profile.verdict}")


@command.command()
@click.argument("collective", type=COLLECTIVE)
@click.option("-n", "--ranks", type=RANKS, required=True, help="Number of ranks.")
@bytes_option
@problem_options(order=True)
@click.option("--profile", "name", help="NAME of the profile.")
@output.json_option
def why(
    collective: str,
    ranks: int,
    nbytes: int,
    request: ProblemOptions,
    name: str | None,
    as_json: bool,
) -> None:
    """Say what would serve a call, and on what evidence.

    \b
        collwise wisdom why allreduce -n 12 --bytes 24000
    """  # noqa: D301
    from collwise.planner.race_lookup import known_races, verdict
    from collwise.report.wisdom_tables import races_table

    request.check([collective])
    problem, _ = request.problem(collective, ranks, nbytes)
    path, remark = (named(name), "") if name else of_this_machine()
    profile = Profile.load(path)
    known = known_races(profile, ranks)
    served = {form: verdict(known, problem, form) for form in FORMS}
    evidence = [race for race in known if (race.collective, race.ranks) == (collective, ranks)]
    if as_json:
        document: dict[str, Any] = {form: call._asdict() for form, call in served.items()}
        document |= {"races": evidence, "profile_path": str(path)}
        output.write_json(msgspec.to_builtins(document))
        return
    output.write(str(problem), *(f"{form:<12} {call}" for form, call in served.items()))
    output.write(f"profile      {remark or path.stem}")
    if evidence:
        output.table(
            races_table(evidence, f"Races of {collective} on {formatting.count(ranks, 'rank')}")
        )


@command.command()
@click.argument("names", nargs=-1, required=True)
@click.option("-o", "--out", type=OUTPUT, required=True, help="File to write.")
def merge(names: tuple[str, ...], out: Path) -> None:
    """Merge profiles of one machine into one file."""
    from collwise.tuning.saving import together

    merged = together(Profile.load(named(name)) for name in names)
    merged.profile.save(out)
    output.write(f"profile  {out}", *merged.lines)


@command.command("copy")
@click.argument("out", type=OUTPUT)
@click.option("--profile", "name", help="NAME of the profile.")
def copy_(out: Path, name: str | None) -> None:
    """Write a profile to a file, for another user of this machine."""
    Profile.load(named(name)).save(out)
    output.write(f"profile  {out}")


command.add_command(  # as it was called before
    click.Command("export", params=copy_.params, callback=copy_.callback, hidden=True)
)


@command.command("import")
@click.argument("files", nargs=-1, type=FILE, required=True)
def import_(files: tuple[Path, ...]) -> None:
    """Add profiles in files, such as those of other users, to the saved profiles."""
    for file in files:
        output.write(*save(Profile.load(file), None).lines)


@command.command()
@name_argument
@click.option("--collective", type=COLLECTIVE, help="Only the races of this collective.")
@click.option("-n", "--ranks", type=RANKS, help="Only the races on so many ranks.")
@click.option("--all", "everything", is_flag=True, help="The whole profile.")
def forget(name: str | None, collective: str | None, ranks: int | None, everything: bool) -> None:
    """Forget races, or a whole profile."""
    from collwise.tuning.saving import without

    if everything == (collective is not None or ranks is not None):
        raise InvalidArgument(
            "forget", "it is not said what", "give --collective or -n, or both, or --all alone"
        )
    path = named(name)
    with locked(path):
        if everything:
            path.unlink()
            output.write(f"forgotten: {path}")
            return
        profile = Profile.load(path)
        kept = without(profile, collective, ranks)
        kept.save(path)
    gone = len(profile.race_results) - len(kept.race_results)
    output.write(f"{formatting.count(gone, 'race')} forgotten: {path}")
