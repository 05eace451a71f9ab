"""`collwise doctor`: what is here, what is wrong, how to mend it."""

import click

from collwise.cli import output
from collwise.cli.failures import my_rank
from collwise.report.tables import Table


@click.command("doctor")
@output.json_option
def command(as_json: bool) -> int:
    """Check MPI, launcher, profile, permissions, lab; exit code 1 if something is wrong."""
    from collwise.doctor.checks import checkup

    if my_rank():
        return 0  # under a launcher one answer is enough
    with output.progress(quiet=as_json) as progress:
        findings = list(checkup(progress))
    if as_json:
        output.write_json({"findings": [finding._asdict() for finding in findings]})
    else:
        rows = [
            {"": f.status, "what": f.what, "seen": f.seen + f"\n→ {f.remedy}" * bool(f.remedy)}
            for f in findings
        ]
        output.table(Table("collwise doctor", rows))
    return 1 if any(finding.status == "wrong" for finding in findings) else 0
