"""What lab and keeper tell each other: JSON of any length, and descriptors beside it."""

import array
import json
import os
import socket
from collections.abc import Sequence
from typing import Any

_MOST_DESCRIPTORS = 8


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends that keep messages apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(end: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a message; its text goes through memory, since sockets limit a message's length."""
    body = os.memfd_create("message", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(body), "wb") as file:
            file.write(json.dumps(message).encode())
        given = array.array("i", [body, *descriptors])
        end.sendmsg([b"m"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, given)])
    finally:
        os.close(body)


def receive(end: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and its descriptors; None if the other end is closed."""
    size = array.array("i").itemsize * _MOST_DESCRIPTORS
    try:
        data, extras, _, _ = end.recvmsg(1, socket.CMSG_SPACE(size), socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None
    if not data:
        return None
    found = array.array("i")
    for _, _, content in extras:
        found.frombytes(content[: len(content) - len(content) % found.itemsize])
    body, *rest = found
    with os.fdopen(body, "rb") as file:
        file.seek(0)
        message: dict[str, Any] = json.loads(file.read())
    return message, rest
