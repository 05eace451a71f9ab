"""Files that are replaced as a whole or not at all."""

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file (through symbolic links) by one with this content, all or nothing.

    Raises OSError; the old file is then as it was.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)  # noqa: PTH105
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
