"""Files: read within bounds, replaced as a whole or not at all; devices stay devices.

That all outputs are written by `replace_file` is for `tests/attack/test_written_files.py`.
"""

import fcntl
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.profiles.example import example

from collwise.errors import DamagedProfile, InvalidArgument
from collwise.profiles.profile import Profile
from collwise.system import files
from collwise.system.files import _taken, read_input, replace_file

CONTENT = b"x" * 1000


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe.png"
    os.mkfifo(path)
    return path


@contextmanager
def room_for_fifty_bytes() -> Iterator[None]:
    """As on a disk with that much room: what is written beyond it is an OSError.

    Of the whole process, so not for longer than it takes: pytest may write a log.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def mode(path: Path) -> int:
    return stat.S_IFMT(path.lstat().st_mode)


def test_a_device_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "null.png"
    link.symlink_to("/dev/null")
    replace_file(link, CONTENT)
    assert mode(link) == stat.S_IFLNK
    assert mode(Path("/dev/null")) == stat.S_IFCHR
    assert os.listdir(tmp_path) == ["null.png"]  # noqa: PTH208


def test_a_pipe_with_a_reader_gets_it(pipe: Path) -> None:
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    replace_file(pipe, CONTENT)
    assert os.read(reader, 1 << 16) == CONTENT
    os.close(reader)
    assert mode(pipe) == stat.S_IFIFO


def test_a_pipe_that_nobody_reads_is_refused(pipe: Path) -> None:
    with pytest.raises(OSError, match="a named pipe that nobody reads"):
        replace_file(pipe, CONTENT)
    assert mode(pipe) == stat.S_IFIFO


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "old.svg"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="File too large"), room_for_fifty_bytes():
        replace_file(path, CONTENT)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["old.svg"]  # noqa: PTH208


def test_what_a_shell_has_opened_is_written_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "output"
    with path.open("wb") as file:
        replace_file(Path(f"/proc/self/fd/{file.fileno()}"), b"first ")
        replace_file(Path(f"/dev/fd/{file.fileno()}"), b"second")
        assert os.fstat(file.fileno()).st_ino == path.stat().st_ino
    assert path.read_bytes() == b"first second"


def test_permissions_are_kept_and_links_followed(tmp_path: Path) -> None:
    path, link = tmp_path / "kept", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to(path)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o600)


def test_inputs_that_may_never_end_are_refused(pipe: Path) -> None:
    for path, kind in ((Path("/dev/zero"), "a device"), (pipe, "a named pipe")):
        with pytest.raises(OSError, match=f"it is {kind}, not a regular file"):
            read_input(path)


def test_a_large_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_READ", 1 << 20)
    path = tmp_path / "large"
    path.write_bytes(b" " * (1 << 20))
    assert len(read_input(path)) == 1 << 20
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(DamagedProfile, match="it has more than 1 MiB"):
        Profile.load(path)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_names_that_no_file_can_have(name: str) -> None:
    with pytest.raises(DamagedProfile):
        Profile.load(name)
    with pytest.raises(InvalidArgument):
        example().save(name)


def test_a_lock_that_another_host_removed_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network's file system keeps a file that is open under another name."""
    place, lock, removed = tmp_path / ".x.lock", fcntl.flock, tmp_path / ".nfs1"

    def late(descriptor: int, how: int) -> None:
        lock(descriptor, how)
        if not removed.exists():
            place.rename(removed)

    monkeypatch.setattr(fcntl, "flock", late)
    assert _taken(place) is None
    held = _taken(place)
    assert held is not None
    os.close(held)
