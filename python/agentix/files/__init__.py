"""Files of a sandbox, beneath one directory.

    await client.remote(files.upload, "data/in.bin", content)
    content = await client.remote(files.download, "data/out.bin")

Paths are beneath `$AGENTIX_UPLOAD_ROOT` (`/workspace` unless set). Every step is opened by itself
and never through a symbolic link, so that nothing in the sandbox can lead a path out of there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator

from pydantic import BaseModel

__all__ = ["UploadResult", "download", "upload"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class UploadResult(BaseModel):
    """The place of the file, and its size in bytes."""

    path: str
    size: int


def _root() -> str:
    return os.environ.get("AGENTIX_UPLOAD_ROOT", "/workspace")


def _steps(path: str) -> list[str]:
    """The names from the root to the file; PermissionError for a path that leaves it."""
    root = _root()
    if os.path.isabs(path):
        inside = os.path.relpath(os.path.normpath(path), os.path.normpath(root))
    else:
        inside = os.path.normpath(path)
    steps = inside.split(os.sep)
    if ".." in steps or inside == "." or "\0" in path:
        raise PermissionError(errno.EACCES, f"not a file beneath {root}", path)
    return steps


@contextlib.contextmanager
def _parent(path: str, steps: list[str], *, create: bool) -> Iterator[int]:
    """A descriptor of the directory that holds the file."""
    if create:
        os.makedirs(_root(), exist_ok=True)
    fd = os.open(_root(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in steps[:-1]:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=fd)
            below = _open(name, _DIRECTORY, fd, path)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _open(name: str, flags: int, dir_fd: int, path: str) -> int:
    try:
        return os.open(name, flags, 0o644, dir_fd=dir_fd)
    except OSError as e:
        # ELOOP: a link; ENOTDIR: O_DIRECTORY met a link, or a file.
        if e.errno == errno.ELOOP or (e.errno == errno.ENOTDIR and _is_link(name, dir_fd)):
            raise PermissionError(errno.EACCES, "a symbolic link is in the way", path) from None
        raise


def _is_link(name: str, dir_fd: int) -> bool:
    import stat

    return stat.S_ISLNK(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode)


def upload(path: str, content: bytes) -> UploadResult:
    """Writes a file: readers see the old content or the new, never a part."""
    steps = _steps(path)
    with _parent(path, steps, create=True) as parent:
        name = steps[-1]
        with contextlib.suppress(FileNotFoundError):
            if _is_link(name, parent):
                raise PermissionError(errno.EACCES, "a symbolic link is in the way", path)
        temporary = f".{name[:200]}.{secrets.token_hex(6)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(_open(temporary, flags, parent, path), "wb") as file:
            try:
                file.write(content)
                file.flush()
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                os.unlink(temporary, dir_fd=parent)
                raise
    return UploadResult(path=os.path.join(_root(), *steps), size=len(content))


def download(path: str) -> bytes:
    """The content of a file."""
    steps = _steps(path)
    with _parent(path, steps, create=False) as parent:
        # O_NONBLOCK: opening a FIFO must not block.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(_open(steps[-1], flags, parent, path), "rb") as file:
            return file.read()
