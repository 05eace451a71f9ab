"""Serves the interactive page of `collwise explore` to browsers on this machine only."""

import secrets
import socket
import webbrowser
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from collwise.errors import InvalidArgument
from collwise.system.files import refusing

HOST = "127.0.0.1"


def check_installed() -> None:
    """Raise InvalidArgument, with what to do, if the page's extra is not installed."""
    if find_spec("marimo") is None:
        raise InvalidArgument(
            "an interactive page",
            "marimo is not installed",
            "install the extra: pip install 'collwise[explore]'",
        )


def serve(port: int, opens: bool, ready: Callable[[str], None]) -> None:
    """Serve the page until somebody interrupts.

    port: 0 for a free one.   opens: whether to open a browser.   ready: called with the address.
    Raises InvalidArgument if the port is taken, or the extra is not installed.
    """
    check_installed()
    import marimo
    import uvicorn
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    notebook = Path(__file__).with_name("app.py")
    # Others on this machine do not know the path; pages of other sites have another Host.
    path = f"/{secrets.token_urlsafe(16)}"
    page = marimo.create_asgi_app(quiet=True).with_app(path=path, root=str(notebook)).build()
    guarded = TrustedHostMiddleware(page, allowed_hosts=[HOST, "localhost"])
    with socket.socket() as listening:
        with refusing(f"a page on port {port}", "give another --port"):
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((HOST, port))
            listening.listen()  # who connects before the server runs has to wait
        address = f"http://{HOST}:{listening.getsockname()[1]}{path}/"
        ready(address)
        if opens:
            webbrowser.open(address)
        server = uvicorn.Server(uvicorn.Config(guarded, log_level="warning"))
        server.run(sockets=[listening])
