"""Files of a checkpoint to which several processes write their parts of the arrays.

Rank 0's file, written last, lists them: without it they are no checkpoint. A name holds a random
word, so that a second checkpoint of one step leaves the first as it is until it is complete.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gpugrad import checkpoint
from gpugrad.core.ranks import Shard, join_shards, ranks
from gpugrad.errors import CheckpointError

KEY = "shards"
"""The metadata of the files: for each its name, and start and whole shape of each array."""

_NAME = re.compile(r"[0-9]{8,}\.[0-9a-f]{8}\.[0-9]+\.safetensors")


def together(call: Callable[[], Any]) -> None:
    """Call a function on each rank; a CheckpointError of one rank is one of all."""
    error = None
    try:
        call()
    except CheckpointError as raised:
        error = raised
    errors = [e for e in ranks.gather(None if error is None else str(error)) if e]
    if errors:
        raise error or CheckpointError(f"On another rank: {errors[0]}")


def write_shards(folder: Path, step: int, shards: Mapping[str, Shard]) -> dict[str, str]:
    """Write this rank's file; returns the metadata that list those of all ranks, if any has one."""
    if not ranks.any(bool(shards)):
        return {}
    word = ranks.gather(secrets.token_hex(4))[0]
    name = f"{step:08d}.{word}.{ranks.rank}.safetensors"
    arrays = {k: shard.array for k, shard in shards.items()}
    together(lambda: checkpoint.save(folder / name, arrays))
    places = {k: (shard.start, shard.shape) for k, shard in shards.items()}
    return {KEY: json.dumps(ranks.gather((name, places)))}


def read_shards(folder: Path, text: str, wanted: Mapping[str, Shard]) -> dict[str, Any]:
    """The whole arrays, as `join_shards` returns them; CheckpointError if a file is missing."""

    def pieces() -> Iterable[dict[str, Shard]]:
        for name, places in json.loads(text):
            arrays, _ = checkpoint.load(folder / name)
            yield {k: Shard(arrays[k], start, tuple(s)) for k, (start, s) in places.items()}

    try:
        return join_shards(pieces(), wanted)
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{folder}: the files of the ranks do not fit: {error}.") from error


def remove_unlisted(folder: Path, kept: Iterable[Path]) -> None:
    """Remove files that no checkpoint lists: of older ones, and of killed processes."""
    listed: set[str] = set()
    for path in kept:
        try:
            text = checkpoint.metadata_of(path).get(KEY, "[]")
            listed |= {name for name, _ in json.loads(text)}
        except (CheckpointError, ValueError):
            return  # a damaged one may be repaired
    for path in folder.glob("*.safetensors"):
        if _NAME.fullmatch(path.name) and path.name not in listed:
            path.unlink(missing_ok=True)
