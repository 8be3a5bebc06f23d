"""The journal by itself: what is an entry, and what is left when writing fails."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from orcast.streaming.journal import Journal

LINES = (b'{"y": 1}', b"", b'{"y": 2, "id": "a b"}')


def test_an_entry_is_its_number_length_checksum_and_line(tmp_path: Path) -> None:
    kept = Journal(tmp_path / "journal")
    for number, line in enumerate(LINES, start=1):
        kept.append(number, line)
    assert list(kept.entries()) == list(enumerate(LINES, start=1))
    whole = [b"%d %d %08x %b\n" % (n, len(s), zlib.crc32(b"%d %b" % (n, s)), s) for n, s in enumerate(LINES, start=1)]
    assert (tmp_path / "journal").read_bytes() == b"".join(whole)
    assert kept.size == len(b"".join(whole))
    kept.close()


@pytest.mark.parametrize(
    "last",
    [b'3 8 00000000 {"y": 1}\n', b'3 9 %08x {"y": 1}\n' % zlib.crc32(b'3 {"y": 1}'), b'4 8 %08x {"y": 1}\n' % 7],
    ids=["checksum", "length", "number"],
)
def test_an_entry_that_is_not_whole_is_cut_off(last: bytes, tmp_path: Path) -> None:
    kept = Journal(tmp_path / "journal")
    kept.append(1, LINES[0])
    kept.append(2, LINES[2])
    size = kept.size
    kept.close()
    with open(tmp_path / "journal", "ab") as file:
        file.write(last)
    kept = Journal(tmp_path / "journal")
    assert list(kept.entries()) == [(1, LINES[0]), (2, LINES[2])]
    assert kept.size == os.path.getsize(tmp_path / "journal") == size
    kept.close()
