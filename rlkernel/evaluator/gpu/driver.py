"""The CUDA driver as the runner needs it: load a binary, launch it, ask what went wrong.

Errors are numbers of the driver (`CUresult`), never text that a candidate can write. Everything runs in torch's primary context.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from typing import Any

import torch
from cuda.bindings import driver as cu

from rlkernel.evaluator.program.schema import Descriptor
from rlkernel.types import Status

STATUS_OF_ERROR = {
    700: (Status.OUT_OF_BOUNDS, "a kernel used an illegal memory address"),
    702: (Status.TIMEOUT, "a kernel ran too long"),
    710: (Status.RUNTIME_ERROR, "a device-side assertion failed (an index out of range?)"),
    715: (Status.CRASH, "a kernel executed an illegal instruction"),
    716: (Status.OUT_OF_BOUNDS, "a kernel used a misaligned address"),
    717: (Status.OUT_OF_BOUNDS, "a kernel used an address of another address space"),
    718: (Status.OUT_OF_BOUNDS, "a kernel jumped to an invalid address"),
    719: (Status.CRASH, "a kernel failed on the GPU"),
}
"""The verdict for each error after which the context is lost, by CUresult."""

_FORMATS = {
    "i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u1": "B", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "fp16": "e", "fp32": "f", "f32": "f", "fp64": "d",
}  # fmt: skip
_DEVICE_TO_HOST_DTYPE = {8: 10, 9: 8, 10: 9}
"""The driver's number of a tensor map's element type, by Triton's number, where the two differ."""
_MAP_BYTES = 128
"""The size of a tensor map."""


class DriverError(RuntimeError):
    """A driver call has failed. `code` is the CUresult."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: {cu.CUresult(code).name}")
        self.code = code


def check(what: str, result: Any) -> Any:
    """Return the values of a driver call's result, which is (error, *values). Raises DriverError."""
    code = int(result[0])
    if code:
        raise DriverError(what, code)
    return result[1] if len(result) == 2 else result[1:]


def lost_context() -> int | None:
    """Return the CUresult of an error that the context will not recover from; None while it is healthy."""
    code = int(cu.cuCtxSynchronize()[0])
    return code or None


def reset_persisting_l2() -> None:
    """Make the lines that a kernel asked to keep in L2 ordinary ones, so that a flush evicts them."""
    check("cuCtxResetPersistingL2Cache", cu.cuCtxResetPersistingL2Cache())


@dataclass(frozen=True, slots=True)
class Binary:
    """What a launch needs to know of a compiled kernel, from the fields of `compile.binaries.Compiled`."""

    symbol: str
    parameters: tuple[tuple[str, str], ...]
    """The name and the Triton type of each parameter that the kernel takes, in order."""
    shared_bytes: int
    num_warps: int
    num_ctas: int
    scratch_bytes: int
    """Global memory per block, e.g. for tensor descriptors made on the device."""
    scratch_align: int
    descriptors: tuple[dict[str, Any] | None, ...]
    """How Triton lays out the tensor map of each descriptor parameter; None where it passes a plain pointer."""


def _slots(binary: Binary) -> list[tuple[str, int]]:
    """Return the struct format and alignment of each kernel parameter, with descriptors taken apart as Triton does."""
    slots: list[tuple[str, int]] = []
    metas = iter(binary.descriptors)
    for _, kind in binary.parameters:
        if kind.startswith("tensordesc"):
            rank = kind.partition("[")[2].partition("]")[0].count(",") + 1
            if next(metas, None) is None:
                slots += [("Q", 8), *[("q", 8)] * (2 * rank), ("b", 1), ("b", 1)]
            else:
                slots.append((f"{_MAP_BYTES}s", 64))
            slots += [("i", 4)] * rank + [("q", 8)] * rank
        else:
            slots.append(("Q", 8) if kind.startswith("*") else (_FORMATS[kind], 8))
    return [*slots, ("Q", 8), ("Q", 8)]  # global scratch and profile scratch


class Kernel:
    """A binary in the current context, ready to be launched. Raises DriverError if it does not load."""

    def __init__(self, binary: Binary, cubin: bytes) -> None:
        self.binary = binary
        self._module = check("cuModuleLoadData", cu.cuModuleLoadData(cubin))
        self._function = check("cuModuleGetFunction", cu.cuModuleGetFunction(self._module, binary.symbol.encode()))
        if binary.shared_bytes > 48 << 10:
            attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            check("cuFuncSetAttribute", cu.cuFuncSetAttribute(self._function, attribute, binary.shared_bytes))
        slots = _slots(binary)
        size, offsets, layout = 0, [], "<"
        for form, align in slots:
            pad = -size % align
            layout += f"{pad}x{form}"
            offsets.append(size + pad)
            size += pad + struct.calcsize("<" + form)
        self._pack = struct.Struct(layout)
        raw = ctypes.create_string_buffer(size + 64)
        start = -ctypes.addressof(raw) % 64
        self._values, self._start = raw, start
        pointers = [ctypes.addressof(raw) + start + offset for offset in offsets]
        self._pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        self._address = ctypes.addressof(self._pointers)
        self._scratch: torch.Tensor | None = None
        self._names = [name for name, _ in binary.parameters]
        self._plain = not any(kind.startswith("tensordesc") for _, kind in binary.parameters)

    def unload(self) -> None:
        """Give the binary's memory back. Raises DriverError."""
        check("cuModuleUnload", cu.cuModuleUnload(self._module))

    def launch(self, grid: tuple[int, int, int], args: dict[str, Any], stream: int) -> None:
        """Enqueue one launch. `args` maps each parameter to a tensor, a descriptor or a number. Raises DriverError."""
        if 0 in grid:
            return
        if self._plain:
            numbers = [value.data_ptr() if isinstance(value := args[name], torch.Tensor) else value for name in self._names]
        else:
            numbers = self._with_descriptors(args)
        scratch = self._scratch_for(grid)
        try:
            self._pack.pack_into(self._values, self._start, *numbers, scratch, 0)
        except OverflowError:  # a float beyond float32 is infinite there
            numbers = [ctypes.c_float(n).value if isinstance(n, float) else n for n in numbers]
            self._pack.pack_into(self._values, self._start, *numbers, scratch, 0)
        threads, shared = 32 * self.binary.num_warps, self.binary.shared_bytes
        if self.binary.num_ctas == 1:
            result = cu.cuLaunchKernel(self._function, *grid, threads, 1, 1, shared, stream, self._address, 0)
        else:
            result = cu.cuLaunchKernelEx(self._cluster(grid, threads, shared, stream), self._function, self._address, 0)
        check("cuLaunchKernel", result)

    def _scratch_for(self, grid: tuple[int, int, int]) -> int:
        """Return the address of the global memory that the kernel asks for; 0 if it asks for none."""
        if not self.binary.scratch_bytes:
            return 0
        align = max(1, self.binary.scratch_align)
        size = grid[0] * grid[1] * grid[2] * self.binary.num_ctas * self.binary.scratch_bytes + align
        if self._scratch is None or self._scratch.numel() < size:
            self._scratch = torch.empty(size, dtype=torch.uint8, device="cuda")
        address = self._scratch.data_ptr()
        return address + -address % align

    def _cluster(self, grid: tuple[int, int, int], threads: int, shared: int, stream: int) -> Any:
        """Return the configuration of a launch of clusters of blocks, as Triton makes it for num_ctas > 1."""
        attribute = cu.CUlaunchAttribute()
        attribute.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = self.binary.num_ctas, 1, 1
        policy = cu.CUlaunchAttribute()
        policy.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
        policy.value.clusterSchedulingPolicyPreference = cu.CUclusterSchedulingPolicy.CU_CLUSTER_SCHEDULING_POLICY_SPREAD
        config = cu.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid[0] * self.binary.num_ctas, grid[1], grid[2]
        config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
        config.sharedMemBytes, config.hStream = shared, stream
        config.attrs, config.numAttrs = [attribute, policy], 2
        return config

    def _with_descriptors(self, args: dict[str, Any]) -> list[Any]:
        """Return the numbers that the kernel gets for `args`, descriptors taken apart as in `_slots`. Raises DriverError."""
        numbers: list[Any] = []
        metas = iter(self.binary.descriptors)
        for name in self._names:
            value = args[name]
            if not isinstance(value, Descriptor):
                numbers.append(value.data_ptr() if isinstance(value, torch.Tensor) else value)
                continue
            meta = next(metas, None)
            if meta is None:
                numbers += [value.base.data_ptr(), *value.shape, *value.strides, value.padding == "nan", False]
            else:
                numbers.append(_tensor_map(value, meta))
            numbers += [*value.shape, *value.strides]
        return numbers


def _tensor_map(value: Descriptor, meta: dict[str, Any]) -> bytes:
    """Return the 128 bytes that the TMA unit reads; its sizes and strides go from the innermost dimension outward.

    Raises DriverError.
    """
    kind = int(meta["elem_type"])
    element, rank = int(meta["elem_size"]), len(value.shape)
    shape = [int(s) * (2 if meta.get("fp4_padded") and i == rank - 1 else 1) for i, s in enumerate(value.shape)]
    strides = [cu.cuuint64_t(int(s) * element) for s in reversed(value.strides[:-1])]
    encoded = check(
        "cuTensorMapEncodeTiled",
        cu.cuTensorMapEncodeTiled(
            cu.CUtensorMapDataType(_DEVICE_TO_HOST_DTYPE.get(kind, kind)),
            rank,
            value.base.data_ptr(),
            [cu.cuuint64_t(s) for s in reversed(shape)],
            strides or [cu.cuuint64_t(shape[-1] * element)],
            [cu.cuuint32_t(int(b)) for b in reversed(meta["block_size"])],
            [cu.cuuint32_t(1)] * rank,
            cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            cu.CUtensorMapSwizzle(int(meta["swizzle"])),
            cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            cu.CUtensorMapFloatOOBfill(1 if value.padding == "nan" else 0),
        ),
    )
    return ctypes.string_at(int(encoded.getPtr()), _MAP_BYTES)


def upload_graph(graph: int, stream: int) -> None:
    """Enqueue the upload of an instantiated graph, by its address, so that its first launch does not pay for it. Raises
    DriverError."""
    check("cuGraphUpload", cu.cuGraphUpload(cu.CUgraphExec(graph), cu.CUstream(stream)))


def clock_khz() -> int:
    """Return the highest clock of the multiprocessors, in kHz. Raises DriverError."""
    return _attribute("CU_DEVICE_ATTRIBUTE_CLOCK_RATE")


def shared_bytes() -> int:
    """Return the shared memory that one block may use, in bytes. Raises DriverError."""
    return _attribute("CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")


def _attribute(name: str) -> int:
    device = check("cuCtxGetDevice", cu.cuCtxGetDevice())
    return int(check("cuDeviceGetAttribute", cu.cuDeviceGetAttribute(getattr(cu.CUdevice_attribute, name), device)))
