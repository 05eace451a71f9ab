"""Reads files up to a size, and replaces files as a whole or not at all."""

import errno
import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from collwise.errors import InvalidArgument

T = TypeVar("T")

MAX_READ = 64 << 20
"""Bytes of the largest file that is read; a large profile has some hundred kilobytes."""

LOCK_LIMIT_S = 60.0
"""How many seconds one process waits for another that changes a file."""

_KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a block device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}
_OPEN_FILES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""Folders whose entries, such as /dev/stdout, are files that somebody has open."""


def read_input(path: Path) -> bytes:
    """The content of a regular file, without waiting for data.

    Raises OSError, also for a file that is not regular or has more than MAX_READ bytes.
    """
    if (kind := stat.S_IFMT(path.stat().st_mode)) not in (stat.S_IFREG, stat.S_IFDIR):
        raise OSError(errno.EINVAL, f"it is {_KINDS[kind]}, not a regular file")
    # Some files of /proc have nothing to read yet, and would block us.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        content = file.read(MAX_READ + 1) or b""
    if len(content) > MAX_READ:
        raise OSError(errno.EFBIG, f"it has more than {MAX_READ >> 20} MiB")
    return content


def decode_json(content: bytes | str, form: type[T]) -> T:
    """An object of the type `form` from a JSON document.  Raises msgspec's errors (ValueError)."""
    try:
        return msgspec.json.decode(content, type=form)
    except RecursionError:
        raise msgspec.DecodeError("its values are in each other too deeply") from None


def is_written_in_place(path: Path) -> bool:
    """Whether a file must be written in place, since a new file cannot replace it.

    True for devices, pipes, sockets and open files such as /dev/stdout.
    """
    if not path.exists():
        return False
    return stat.S_IFMT(path.stat().st_mode) in _KINDS or path.parent in _OPEN_FILES


def replace_file(path: Path, content: bytes) -> None:
    """Give a file new content, all or nothing; make missing folders, and follow symbolic links.

    Character devices, named pipes with a reader and open files such as /dev/stdout are written in
    place.  Raises OSError; a file that would be replaced is then unchanged.
    """
    if is_written_in_place(path):
        _write_in_place(path, stat.S_IFMT(path.stat().st_mode), content)
        return
    path = _resolved(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name[:200]}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, draft)
        os.replace(draft, path)  # noqa: PTH105
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _resolved(path: Path) -> Path:
    """The path without symbolic links.   Raises OSError for links in a circle."""
    try:
        return path.resolve()
    except RuntimeError as circle:  # until Python 3.12
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from circle


def save_text(path: Path, text: str, what: str) -> None:
    """Give a file new text, all or nothing.   what: the error's word for the file.

    Raises InvalidArgument if the file cannot be written.
    """
    with refusing(f"write the {what} {path}", "make room, or name another file"):
        replace_file(path, text.encode())


@contextmanager
def refusing(asked: str, remedy: str) -> Iterator[None]:
    """A context that turns an OSError into an InvalidArgument with the same reason."""
    try:
        yield
    except OSError as error:
        raise InvalidArgument(asked, error.strerror or str(error), remedy) from error


@contextmanager
def locked(path: Path, limit_s: float = LOCK_LIMIT_S) -> Iterator[None]:
    """A context in which no other process is inside `locked` for the same path.

    A lock file beside `path` is locked, and removed at the end.  Nothing is locked if the file
    system has no locks.   limit_s: seconds to wait for another process.
    Raises TimeoutError after that time, and OSError.
    """
    path = _resolved(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    place = path.with_name(f".{path.name[:200]}.lock")
    deadline = time.monotonic() + limit_s
    while (lock := _taken(place)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(
                errno.ETIMEDOUT, f"another process has been changing it for {limit_s:g} s"
            )
        time.sleep(0.005)
    try:
        yield
    finally:
        place.unlink(missing_ok=True)
        os.close(lock)


def _taken(place: Path) -> int | None:
    """The descriptor of the lock file, locked by this process; None if another process has it."""
    lock = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Who had it before has removed the file: others make a new one, and lock that.  On another
        # host's file system only the name tells.
        if os.path.samestat(os.fstat(lock), place.stat()):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            return lock
        os.close(lock)
        raise
    os.close(lock)
    return None


def _write_in_place(path: Path, kind: int, content: bytes) -> None:
    if kind in (stat.S_IFBLK, stat.S_IFSOCK):
        raise OSError(errno.EINVAL, f"it is {_KINDS[kind]}, not a regular file")
    try:  # without blocking: a named pipe that nobody reads would keep us waiting for ever
        target = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, f"it is {_KINDS[kind]} that nobody reads") from None
        raise
    os.set_blocking(target, True)
    with os.fdopen(target, "wb") as file:
        file.write(content)
