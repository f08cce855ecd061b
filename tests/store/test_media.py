from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.store.media import LARGEST_IMAGE, MediaError, MediaStore, sniff_image
from crystal.types.items import ImageRef

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF87a.", "image/gif"),
        (b"GIF89a.", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
def test_an_image_is_kept_under_its_digest_and_comes_back(tmp_path: Path, data: bytes, media_type: str) -> None:
    store = MediaStore(tmp_path / "media")
    reference = store.put(data, "shot.txt")
    assert reference == ImageRef(
        digest=hashlib.sha256(data).hexdigest(), media_type=media_type, size=len(data), name="shot.txt"
    )
    assert store.load(reference) == data
    (name,) = os.listdir(tmp_path / "media")
    assert stat.S_IMODE((tmp_path / "media" / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "media").stat().st_mode) == 0o700


def test_the_same_bytes_are_kept_once(tmp_path: Path) -> None:
    store = MediaStore(tmp_path / "media")
    first = store.put(PNG, "a")
    made = (tmp_path / "media" / first.digest).stat().st_ino
    assert store.put(PNG, "b").digest == first.digest
    assert (tmp_path / "media" / first.digest).stat().st_ino == made


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40))
def test_only_the_four_types_pass(data: bytes) -> None:
    starts = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
    known = data.startswith(starts) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")
    assert bool(sniff_image(data)) is known


@pytest.mark.parametrize("data", [b"", b"<svg/>", b"RIFF\x00\x00\x00\x00WAVE", b"BM\x00\x00", b"GIF86a"])
def test_anything_else_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(MediaError, match="image logo is not a PNG, JPEG, GIF or WebP file"):
        MediaStore(tmp_path / "media").put(data, "logo")
    assert not (tmp_path / "media").exists()


def test_twenty_mebibytes_are_the_limit(tmp_path: Path) -> None:
    store = MediaStore(tmp_path / "media")
    largest = PNG.ljust(LARGEST_IMAGE, b"\x00")
    assert store.load(store.put(largest)) == largest
    with pytest.raises(MediaError, match=r"image has 20\.0 MiB; at most 20 MiB can be kept"):
        store.put(largest + b"\x00")


def test_a_damaged_file_is_not_handed_out_and_a_new_put_mends_it(tmp_path: Path) -> None:
    store = MediaStore(tmp_path / "media")
    reference = store.put(PNG)
    (tmp_path / "media" / reference.digest).write_bytes(PNG[:-1] + b"!")
    with pytest.raises(MediaError, match="is damaged"):
        store.load(reference)
    store.put(PNG)
    assert store.load(reference) == PNG


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    reference = ImageRef(digest="0" * 64, media_type="image/png", size=1, name="shot.png")
    with pytest.raises(MediaError, match=r"the image shot\.png is missing"):
        MediaStore(tmp_path / "media").load(reference)


@pytest.mark.parametrize("digest", ["../config.json", "/etc/hostname", "", "0" * 63, "A" * 64, "0" * 64 + "\n"])
def test_a_digest_never_leads_out_of_the_folder(tmp_path: Path, digest: str) -> None:
    (tmp_path / "config.json").write_bytes(b"{}")
    (tmp_path / "media").mkdir()
    with pytest.raises(MediaError, match="is not the digest of an image"):
        MediaStore(tmp_path / "media").load(ImageRef(digest=digest, media_type="image/png", size=2))
