"""Arrays in a page: little-endian numbers, deflated, in base64. The page's ``browser/kit.js`` reads them."""

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

KINDS = {"f32": "<f4", "u8": "<u1", "u16": "<u2", "u32": "<u4", "i32": "<i4"}
"""Types of numbers in a page, and numpy's names of them."""


def pack(values: npt.ArrayLike, kind: str) -> dict[str, Any]:
    """An array of one of the ``KINDS`` as JSON: its type, and its numbers in row-major order."""
    numbers = np.ascontiguousarray(np.asarray(values), dtype=KINDS[kind])
    return {"array": kind, "data": base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()}


def unpack(packed: dict[str, Any]) -> npt.NDArray[Any]:
    """The numbers of ``pack``, in one dimension."""
    return np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), KINDS[packed["array"]])


def smallest(count: int) -> str:
    """The smallest unsigned type for numbers below ``count``."""
    return "u8" if count <= 2**8 else "u16" if count <= 2**16 else "u32"
