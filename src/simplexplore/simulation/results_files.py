"""Folders of results: one manifest, and one compressed file of arrays per result.

The manifest, ``results.json``, names its format and version, and is written last and at once,
so that a folder is never half new and half old.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore import __version__
from simplexplore.errors import SettingError
from simplexplore.files import write_whole

MANIFEST = "results.json"
FORMAT = "simplexplore results"
# Goes up when a reader of the last version would misread a folder.
VERSION = 1

# Of the hash in names of files of arrays.
DIGITS = 12


class ResultsFolder:
    """A folder of results, which need not exist yet.

    Attributes
    ----------
    path : Path
    manifest : Path
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path, self._given = Path(folder), str(folder)
        self.manifest = self.path / MANIFEST

    # ------------------------------------------------------------------ writing

    def check_writable(self) -> None:
        """Raise `SettingError` if no results can be written here; write nothing."""
        refused = f"cannot save results in {str(self.path)!r}"
        path = self.path.absolute()
        try:
            existing = next(place for place in (path, *path.parents) if place.exists())
        except OSError as error:
            raise SettingError(f"{refused}: {_reason(error)}.") from None
        if not existing.is_dir():
            raise SettingError(f"{refused}: {str(existing)!r} is a file, not a folder.")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise SettingError(f"{refused}: permission denied.")
        if self.manifest.exists() and not self._is_ours():
            raise SettingError(
                f"{refused}: the {MANIFEST} there is not ours, and would be lost; choose another "
                "folder."
            )

    def write_manifest(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Replace what the folder held: the entries are its results from now on."""
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "simplexplore": __version__,
            "results": entries,
        }
        write_whole(self.manifest, (json.dumps(manifest, indent=1) + "\n").encode())
        for path in self.path.glob(f"*-{'[0-9a-f]' * DIGITS}.npz"):
            if path.name not in [entry["arrays"] for entry in entries]:
                path.unlink()

    def write_arrays(self, label: str, arrays: Mapping[str, Any]) -> str:
        """Write arrays into a file of their own; its name."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        data = buffer.getvalue()
        # Named after its content: a new result never overwrites what an old manifest speaks of.
        name = f"{label}-{hashlib.sha256(data).hexdigest()[:DIGITS]}.npz"
        write_whole(self.path / name, data)
        return name

    def write_own(self, files: Sequence[Path | None]) -> str | None:
        """Keep a sampler or threshold of the user's, under its own name; what it needs beside."""
        texts = {file.name: file.read_bytes() for file in files if file is not None}
        if not texts:
            return None
        place = f"own/{hashlib.sha256(b''.join(texts.values())).hexdigest()[:12]}"
        (self.path / place).mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_whole(self.path / place / name, text)
        return f"{place}/{next(iter(texts))}"

    # ------------------------------------------------------------------ reading

    def entries(self) -> list[dict[str, Any]]:
        """What the manifest says of each result."""
        path = self.manifest
        if not path.is_file():
            raise SettingError(f"{self._given} holds no results: there is no {MANIFEST} in it.")
        content = self._content()
        if content.get("format") != FORMAT:
            raise SettingError(f"{path}: this is not a file of results from simplexplore.")
        version, entries = content.get("version"), content.get("results")
        if isinstance(version, int) and version > VERSION:
            raise SettingError(
                f"{path}: these results are from a newer version of simplexplore "
                f"({content.get('simplexplore', 'unknown')}, format {version}); this is "
                f"{__version__}, which reads formats up to {VERSION}. Update simplexplore to read "
                "them."
            )
        if version != VERSION or not isinstance(entries, list):
            raise SettingError(f"{path}: it is damaged; it has no list of results.")
        return entries

    def _content(self) -> dict[str, Any]:
        """What the manifest holds, ours or not."""
        try:
            content = json.loads(self.manifest.read_text(encoding="utf-8"))
        except OSError as error:
            raise SettingError(f"{self.manifest}: cannot read it: {_reason(error)}.") from None
        except ValueError as error:
            raise SettingError(f"{self.manifest}: it is damaged; {error}.") from None
        return content if isinstance(content, dict) else {}

    def read_arrays(
        self,
        file: str,
        kinds: Mapping[str, type[np.generic]],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> dict[str, npt.NDArray[Any]]:
        """Arrays of the stated kinds and shapes, which `write_arrays` wrote."""
        path = self.path / Path(file).name
        try:
            # Through memory: numpy leaves a damaged file open.
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in kinds}
        except (EOFError, KeyError, OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise SettingError(f"its file {path.name} is damaged: {_reason(error)}.") from None
        for name, kind in kinds.items():
            if arrays[name].dtype != kind or arrays[name].shape != shapes[name]:
                raise SettingError(
                    f"its file {path.name} is damaged: {name} should be {kind.__name__} of shape "
                    f"{shapes[name]}, and is {arrays[name].dtype} of shape {arrays[name].shape}."
                )
        return arrays

    def _is_ours(self) -> bool:
        try:
            return self._content().get("format") == FORMAT
        except SettingError:
            return False


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error).rstrip(".")
