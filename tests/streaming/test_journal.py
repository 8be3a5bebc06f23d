"""The journal by itself: what is an entry, and what is left when writing fails."""

from __future__ import annotations

import os
import shutil
import zlib
from pathlib import Path

import pytest

from orcast.streaming import journal
from orcast.streaming.durable_session import DurableSession
from orcast.streaming.journal import Journal
from stream_lines import some_lines

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


def test_an_entry_that_could_not_be_written_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Journal(tmp_path / "journal")
    for number, line in enumerate(LINES, start=1):
        kept.append(number, line)

    def full(file: int, data: memoryview) -> int:
        os.write(file, data[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal, "_write", full)
    with pytest.raises(OSError, match="No space"):
        kept.append(4, b"more")
    assert list(kept.entries()) == list(enumerate(LINES, start=1))
    kept.close()


def test_what_the_snapshot_has_is_not_played_again(tmp_path: Path) -> None:
    """The process died after the snapshot was in its place, and before the journal was cut."""
    lines = [line for line in some_lines(9, 60) if b"late" in line][:5]
    kept = DurableSession(tmp_path / "state")
    for line in lines:
        kept.answer(line)
    shutil.copy(tmp_path / "state.journal", tmp_path / "before")
    kept.snapshot()
    kept.close()
    shutil.copy(tmp_path / "before", tmp_path / "state.journal")
    kept = DurableSession(tmp_path / "state")
    assert (kept.recovered, kept.lines) == (0, 5)
    kept.close()
