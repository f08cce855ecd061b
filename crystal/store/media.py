"""Image bytes by content: one file each, named by its SHA-256, never changed once written."""

from __future__ import annotations

import os
import re
from pathlib import Path

from crystal.store.errors import HomeFileError, MediaError
from crystal.store.home import Home, describe
from crystal.types.items import ImageRef

__all__ = ["LARGEST_IMAGE", "MediaError", "MediaStore", "sniff_image"]

LARGEST_IMAGE = 20 * 1024 * 1024
"""Bytes of one image, 20 MiB."""

_DIGEST = re.compile("[0-9a-f]{64}")


class MediaStore:
    """The images of every session of a home.

    :param root: the media folder; made when the first image is put.
    """

    __slots__ = ("_root",)

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, data: bytes, name: str = "") -> ImageRef:
        """Keep an image and return the reference to it; the same bytes are kept once.

        :param name: what the image is called when it is spoken of; not used as a path.
        :raises MediaError: when the bytes are no PNG, JPEG, GIF or WebP, are more than 20 MiB, or cannot be written.
        """
        import hashlib

        called = f"image {name}" if name else "image"
        if len(data) > LARGEST_IMAGE:
            raise MediaError(f"{called} has {len(data) / 1048576:.1f} MiB; at most 20 MiB can be kept")
        media_type = sniff_image(data)
        if not media_type:
            raise MediaError(f"{called} is not a PNG, JPEG, GIF or WebP file")
        reference = ImageRef(digest=hashlib.sha256(data).hexdigest(), media_type=media_type, size=len(data), name=name)
        path = self._root / reference.digest
        if _read(path) != data:
            try:
                Home(root=self._root.parent).write_private(path, data)
            except HomeFileError as error:
                raise MediaError(f"{called} cannot be kept: {error}") from error
        return reference

    def load(self, ref: ImageRef) -> bytes:
        """Return the bytes behind a reference.

        :raises MediaError: when they are missing or are not those that were kept.
        """
        import hashlib

        if not _DIGEST.fullmatch(ref.digest):
            raise MediaError(f"{ref.digest[:80]!r} is not the digest of an image")
        data = _read(self._root / ref.digest)
        if data is None:
            raise MediaError(f"the image {ref.name or ref.digest[:12]} is missing in {self._root}")
        if len(data) != ref.size or hashlib.sha256(data).hexdigest() != ref.digest:
            raise MediaError(f"the image {ref.name or ref.digest[:12]} in {self._root} is damaged")
        return data


def printable_name(name: str) -> str:
    """Return a name that any text can hold; the bytes of a file name that are no characters become ``?``."""
    return name.encode("utf-8", "replace").decode("utf-8")


def sniff_image(data: bytes) -> str:
    """Return the media type that the first bytes show, empty when they show no image a session may hold."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return ""


def _read(path: Path) -> bytes | None:
    try:
        with open(os.fspath(path), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MediaError(f"{path} cannot be read: {describe(error)}") from error
