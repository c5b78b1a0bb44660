"""Reads a GGUF file: its metadata, and its tensors as numbers.

It needs numpy alone, so that it runs on a borrowed machine where nothing can be installed. Of the quantised forms it knows those that
files of the kind Q4_K_M hold.
"""

import mmap
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.float32]

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_OF_A_BLOCK = 256


class Gguf:
    """A file, opened; tensors are read when they are asked for."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 0
        magic, version, tensors, entries = self._take("<4sIQQ")
        if magic != b"GGUF" or version < 2:
            raise ValueError(f"{path} is no GGUF file of version 2 or later")
        self.metadata: Mapping[str, Any] = {
            self._string(): self._value(self._scalar("I")) for _ in range(entries)
        }
        self._tensors = dict(self._tensor() for _ in range(tensors))
        aligned = int(self.metadata.get("general.alignment", 32))
        self._data = -(-self._at // aligned) * aligned

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tensors."""
        return tuple(self._tensors)

    def tensor(self, name: str) -> Numbers:
        """Return a tensor in float32; the first dimension is the outermost, as in numpy."""
        shape, kind, offset = self._tensors[name]
        if kind not in _KINDS:
            raise ValueError(f"tensor {name} is stored in a form ({kind}) that is not known here")
        weights, size, decode = _KINDS[kind]
        blocks = int(np.prod(shape)) // weights
        raw = np.frombuffer(self._map, np.uint8, blocks * size, self._data + offset).reshape(blocks, size)
        return decode(raw).reshape(shape)

    def _take(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(form, self._map, self._at)
        self._at += struct.calcsize(form)
        return found

    def _scalar(self, form: str) -> Any:  # noqa: ANN401  # whatever the file says
        return self._take(f"<{form}")[0]

    def _string(self) -> str:
        length = self._scalar("Q")
        self._at += length
        return self._map[self._at - length : self._at].decode()

    def _value(self, kind: int) -> Any:  # noqa: ANN401  # whatever the file says
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            inner, length = self._take("<IQ")
            if inner in _SCALARS:
                return list(self._take(f"<{length}{_SCALARS[inner]}"))
            return [self._value(inner) for _ in range(length)]
        return self._scalar(_SCALARS[kind])

    def _tensor(self) -> tuple[str, tuple[tuple[int, ...], int, int]]:
        name = self._string()
        dimensions = self._scalar("I")
        shape = self._take(f"<{dimensions}Q")
        kind, offset = self._take("<IQ")
        return name, (tuple(reversed(shape)), kind, offset)


def _halves(raw: Bytes) -> Numbers:
    return np.ascontiguousarray(raw).view(np.float16).astype(np.float32)


def _f32(raw: Bytes) -> Numbers:
    return np.ascontiguousarray(raw).view(np.float32).astype(np.float32)


def _q8_0(raw: Bytes) -> Numbers:
    """32 weights: a scale, and 32 signed bytes."""
    return _halves(raw[:, :2]) * np.ascontiguousarray(raw[:, 2:]).view(np.int8).astype(np.float32)


def _q4_k(raw: Bytes) -> Numbers:
    """256 weights in eight groups: two scales, eight pairs of 6 bits (a scale and a minimum for each group), 4 bits a weight."""
    scale, least = _halves(raw[:, 0:2]), _halves(raw[:, 2:4])
    packed, nibbles = raw[:, 4:16], raw[:, 16:144].reshape(-1, 4, 32)
    low, middle, high = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([low & 63, (high & 15) | ((low >> 6) << 4)], axis=1).astype(np.float32)
    leasts = np.concatenate([middle & 63, (high >> 4) | ((middle >> 6) << 4)], axis=1).astype(np.float32)
    weights = np.stack([nibbles & 15, nibbles >> 4], axis=2).reshape(-1, 8, 32).astype(np.float32)
    return (scale * scales)[:, :, None] * weights - (least * leasts)[:, :, None]


def _q6_k(raw: Bytes) -> Numbers:
    """256 weights in sixteen groups: 4 low and 2 high bits a weight, a signed byte a group, one scale."""
    low, high = raw[:, :128].reshape(-1, 2, 2, 32), raw[:, 128:192].reshape(-1, 2, 1, 32)
    scales = np.ascontiguousarray(raw[:, 192:208]).view(np.int8).astype(np.float32)
    scale = _halves(raw[:, 208:210])
    lows = np.concatenate([low & 15, low >> 4], axis=2)
    highs = np.concatenate([(high >> shift) & 3 for shift in (0, 2, 4, 6)], axis=2)
    weights: Numbers = (lows | (highs << 4)).astype(np.float32) - 32
    found: Numbers = (scale * scales)[:, :, None] * weights.reshape(-1, 16, 16)
    return found


_KINDS: Mapping[int, tuple[int, int, Callable[[Bytes], Numbers]]] = {
    0: (1, 4, _f32),
    1: (1, 2, _halves),
    8: (32, 34, _q8_0),
    12: (_OF_A_BLOCK, 144, _q4_k),
    14: (_OF_A_BLOCK, 210, _q6_k),
}
"""For each form its weights in a block, the bytes of one, and what decodes blocks."""
