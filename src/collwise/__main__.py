"""Runs the command line: `python -m collwise` does the same as `collwise`."""

import os
import signal
from typing import NoReturn


def _end(number: int, frame: object) -> NoReturn:
    os.write(2, b"collwise: interrupted\n")
    os._exit(130)


def main() -> None:
    """Run the command line; until it is loaded, an interruption ends with a short message."""
    if (handler := signal.getsignal(signal.SIGINT)) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from collwise.cli import main as command_line

    signal.signal(signal.SIGINT, handler)
    command_line()


if __name__ == "__main__":
    main()
