"""What a launch hands to the CUDA driver, byte by byte. The driver is played here."""

from __future__ import annotations

import ctypes
import struct
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlkernel.evaluator.program.schema import Descriptor


class Result(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class Driver:
    """Records launches: everything of them but the parameters, and the bytes behind each parameter."""

    CUresult = Result
    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic shared bytes")

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.launched: list[tuple[Any, ...]] = []
        self.parameters: list[bytes] = []
        self.attributes: list[tuple[Any, ...]] = []
        self.answer = Result.CUDA_SUCCESS

    def cuModuleLoadData(self, cubin: bytes) -> tuple[int, Any]:
        return (Result.CUDA_SUCCESS, f"module {len(cubin)}") if cubin else (Result.CUDA_ERROR_INVALID_IMAGE, None)

    def cuModuleGetFunction(self, module: str, symbol: bytes) -> tuple[int, Any]:
        return Result.CUDA_SUCCESS, (module, symbol)

    def cuFuncSetAttribute(self, *attribute: Any) -> tuple[int]:
        self.attributes.append(attribute)
        return (Result.CUDA_SUCCESS,)

    def cuLaunchKernel(self, *args: Any) -> tuple[int]:
        *rest, address, _ = args
        pointers = (ctypes.c_void_p * len(self.sizes)).from_address(address)
        self.parameters = [ctypes.string_at(int(p or 0), size) for p, size in zip(pointers, self.sizes, strict=True)]
        self.launched.append(tuple(rest))
        return (self.answer,)

    def cuCtxSynchronize(self) -> tuple[int]:
        return (self.answer,)


def kernel(
    room: Any, monkeypatch: pytest.MonkeyPatch, parameters: dict[str, str], sizes: list[int], **facts: Any
) -> tuple[Any, Driver]:
    """A kernel with these parameters, which take so many bytes; two addresses of scratch memory follow."""
    driver = Driver([*sizes, 8, 8])
    monkeypatch.setattr(room.driver, "cu", driver)
    facts = {"shared_bytes": 0, "num_warps": 4, "num_ctas": 1, "scratch_bytes": 0, "scratch_align": 1, "descriptors": (), **facts}
    return room.driver.Kernel(room.driver.Binary("k", tuple(parameters.items()), **facts), b"cubin"), driver


def test_parameters_lie_where_the_kernel_reads_them(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"x": "*fp32", "flag": "i1", "n": "i32", "wide": "i64", "scale": "fp32", "small": "u8"}
    made, driver = kernel(room, monkeypatch, kinds, [8, 1, 4, 8, 4, 1])
    x = torch.ones(3)
    made.launch((5, 6, 7), {"x": x, "flag": True, "n": -2, "wide": 1 << 40, "scale": 0.5, "small": 255}, 99)
    assert driver.parameters == [
        struct.pack("<Q", x.data_ptr()), b"\x01", struct.pack("<i", -2), struct.pack("<q", 1 << 40), struct.pack("<f", 0.5),
        b"\xff", bytes(8), bytes(8),
    ]  # fmt: skip
    # 4 warps of 32 threads, no shared memory, stream 99
    assert driver.launched == [(("module 5", b"k"), 5, 6, 7, 128, 1, 1, 0, 99)]


def test_a_float_beyond_float32_is_infinite(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, driver = kernel(room, monkeypatch, {"scale": "fp32"}, [4])
    made.launch((1, 1, 1), {"scale": -1e300}, 0)
    assert driver.parameters[0] == struct.pack("<f", float("-inf"))


def test_an_empty_grid_is_not_launched(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, driver = kernel(room, monkeypatch, {}, [])
    made.launch((3, 0, 1), {}, 0)
    assert driver.launched == []


def test_a_descriptor_without_a_tensor_map_is_taken_apart(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    base = torch.zeros(8, 16)
    # base, sizes and strides, padding with NaN, rounding; then sizes as int32 and strides as int64 once more
    sizes = [8, *[8] * 4, 1, 1, *[4] * 2, *[8] * 2]
    made, driver = kernel(room, monkeypatch, {"d": "tensordesc<fp32[4, 16]>"}, sizes, descriptors=(None,))
    made.launch((1, 1, 1), {"d": Descriptor(base, (8, 16), (16, 1), (4, 16), "nan")}, 0)
    numbers = [int.from_bytes(raw, "little") for raw in driver.parameters]
    assert numbers == [base.data_ptr(), 8, 16, 16, 1, 1, 0, 8, 16, 16, 1, 0, 0]


def test_large_shared_memory_is_asked_for(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel(room, monkeypatch, {}, [], shared_bytes=48 << 10)[1].attributes == []
    _, driver = kernel(room, monkeypatch, {}, [], shared_bytes=(48 << 10) + 1)
    assert driver.attributes == [(("module 5", b"k"), "dynamic shared bytes", 49153)]


def test_errors_are_numbers_with_the_drivers_name(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, driver = kernel(room, monkeypatch, {}, [])
    assert room.driver.lost_context() is None
    driver.answer = Result.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(room.driver.DriverError, match=r"^cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS$") as raised:
        made.launch((1, 1, 1), {}, 0)
    assert raised.value.code == room.driver.lost_context() == 700
    status, line = room.driver.STATUS_OF_ERROR[700]
    assert (str(status), line) == ("out_of_bounds", "a kernel used an illegal memory address")
    with pytest.raises(room.driver.DriverError, match=r"^cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE$"):
        room.driver.Kernel(made.binary, b"")


@pytest.mark.parametrize(("result", "values"), [((0,), ()), ((0, "one"), "one"), ((0, 1, 2), (1, 2))])
def test_the_values_of_a_call(room: Any, result: tuple[Any, ...], values: Any) -> None:
    assert room.driver.check("call", result) == values
