"""Messages between a lab and its supervisor: JSON of any length, with open descriptors."""

import json
import os
import socket
from collections.abc import Sequence
from typing import Any

_MAX_DESCRIPTORS = 8


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that preserve message boundaries."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(end: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a message and open descriptors.  Its text goes in a file, since sockets limit length."""
    with os.fdopen(os.memfd_create("message"), "wb") as file:
        file.write(json.dumps(message).encode())
        file.flush()
        socket.send_fds(end, [b"m"], [file.fileno(), *descriptors])


def receive(end: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and its descriptors; None if the other end is closed."""
    try:
        data, received, _, _ = socket.recv_fds(end, 1, _MAX_DESCRIPTORS)
    except ConnectionResetError:
        return None
    if not data:
        return None
    for descriptor in received:
        os.set_inheritable(descriptor, False)
    body, *descriptors = received
    with os.fdopen(body, "rb") as file:
        file.seek(0)
        return json.load(file), descriptors
