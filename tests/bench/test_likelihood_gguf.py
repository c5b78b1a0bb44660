"""Weights as a GGUF file packs them are read back, by blocks and by files."""

import struct
from pathlib import Path

import numpy as np
import pytest

from bench.likelihood.gguf import _KINDS, Gguf

Q4_K, Q6_K, Q8_0 = 12, 14, 8


def half(value: float) -> bytes:
    return np.float16(value).tobytes()


def q4_k(scale: float, least: float, scales: list[int], leasts: list[int], weights: list[int]) -> bytes:
    """A block as llama.cpp packs it, one weight after another."""
    packed = bytearray(12)
    for at in range(8):
        if at < 4:
            packed[at] |= scales[at]
            packed[at + 4] |= leasts[at]
        else:
            packed[at + 4] |= (scales[at] & 15) | ((leasts[at] & 15) << 4)
            packed[at - 4] |= (scales[at] >> 4) << 6
            packed[at] |= (leasts[at] >> 4) << 6
    nibbles = bytearray(128)
    for at, weight in enumerate(weights):
        group, place = divmod(at, 32)
        nibbles[32 * (group // 2) + place] |= weight << (4 * (group % 2))
    return half(scale) + half(least) + bytes(packed) + bytes(nibbles)


def q6_k(scale: float, scales: list[int], weights: list[int]) -> bytes:
    low, high = bytearray(128), bytearray(64)
    for at, weight in enumerate(weights):
        part, rest = divmod(at, 128)
        quarter, place = divmod(rest, 32)
        low[64 * part + 32 * (quarter % 2) + place] |= (weight & 15) << (4 * (quarter // 2))
        high[32 * part + place] |= (weight >> 4) << (2 * quarter)
    return bytes(low) + bytes(high) + np.array(scales, np.int8).tobytes() + half(scale)


def decoded(kind: int, blocks: bytes) -> np.ndarray:
    weights, size, decode = _KINDS[kind]
    return decode(np.frombuffer(blocks, np.uint8).reshape(-1, size)).reshape(-1, weights)


def test_blocks_of_four_bits():
    draw = np.random.default_rng(1)
    scales, leasts = draw.integers(0, 64, 8).tolist(), draw.integers(0, 64, 8).tolist()
    weights = draw.integers(0, 16, 256).tolist()
    found = decoded(Q4_K, q4_k(0.5, 0.25, scales, leasts, weights))
    wanted = [0.5 * scales[at // 32] * weight - 0.25 * leasts[at // 32] for at, weight in enumerate(weights)]
    np.testing.assert_allclose(found[0], wanted)


def test_blocks_of_six_bits():
    draw = np.random.default_rng(2)
    scales, weights = draw.integers(-128, 128, 16).tolist(), draw.integers(0, 64, 256).tolist()
    found = decoded(Q6_K, q6_k(0.125, scales, weights))
    wanted = [0.125 * scales[at // 16] * (weight - 32) for at, weight in enumerate(weights)]
    np.testing.assert_allclose(found[0], wanted)


def test_blocks_of_eight_bits():
    values = np.arange(-16, 16, dtype=np.int8)
    np.testing.assert_allclose(decoded(Q8_0, half(2.0) + values.tobytes())[0], 2.0 * values)


def made_file(path: Path, kind: int, shape: tuple[int, ...], data: bytes) -> Path:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 3)
    head += text("general.name") + struct.pack("<I", 8) + text("made")
    head += text("made.width") + struct.pack("<II", 4, shape[-1])
    head += text("made.words") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("é")
    head += text("w") + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
    head += struct.pack("<IQ", kind, 0)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path


def test_a_file_has_its_metadata_and_its_tensors(tmp_path: Path):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    file = Gguf(made_file(tmp_path / "made.gguf", 0, (2, 3), values.tobytes()))
    assert file.metadata == {"general.name": "made", "made.width": 3, "made.words": ["a", "é"]}
    assert file.names == ("w",)
    np.testing.assert_array_equal(file.tensor("w"), values)


def test_a_tensor_of_blocks_has_its_shape(tmp_path: Path):
    block = q4_k(1.0, 0.0, [1] * 8, [0] * 8, [3] * 256)
    file = Gguf(made_file(tmp_path / "made.gguf", Q4_K, (2, 256), block * 2))
    assert file.tensor("w").shape == (2, 256)
    assert set(file.tensor("w").ravel()) == {3.0}


def test_other_files_and_forms_are_refused(tmp_path: Path):
    (tmp_path / "other").write_bytes(b"PK" + b"\0" * 40)
    with pytest.raises(ValueError, match="no GGUF file"):
        Gguf(tmp_path / "other")
    file = Gguf(made_file(tmp_path / "made.gguf", 3, (1, 32), b"\0" * 20))
    with pytest.raises(ValueError, match="not known"):
        file.tensor("w")
