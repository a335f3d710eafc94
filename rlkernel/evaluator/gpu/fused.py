"""Our own CUDA kernels, which compare two tensors in one pass over memory and flush L2.

NVRTC compiles them when the first runner of a GPU starts; its successors find the binary in their fork server's scratch folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch
from cuda.bindings import nvrtc

from rlkernel.evaluator.gpu import driver
from rlkernel.evaluator.gpu.stopwatch import stream
from rlkernel.evaluator.judging.errors.comparison import quick_sums

WARPS = 8
BLOCKS_PER_PROCESSOR = 8
WIDE = r"""
__device__ float wide(float x) { return x; }
struct half_bits { unsigned short x; };
struct bfloat_bits { unsigned short x; };
__device__ float wide(half_bits h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.x)); return f; }
__device__ float wide(bfloat_bits h) { return __uint_as_float((unsigned)h.x << 16); }
"""
"""What a kernel over several dtypes begins with: a number of each in float32."""
_SOURCE = (
    WIDE
    + r"""
// out: sum of (a - b)^2, sum of b^2, largest |a - b|. What is not finite shows in the first sum.
template <typename T> __device__ void compare(const T* a, const T* b, long long n, double* out) {
  constexpr int WIDTH = 16 / sizeof(T);
  float miss = 0, size = 0, largest = 0;
  long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = gridDim.x * (long long)blockDim.x;
  for (long long i = first; i < n / WIDTH; i += step) {
    uint4 u = reinterpret_cast<const uint4*>(a)[i], v = reinterpret_cast<const uint4*>(b)[i];
    const T *x = reinterpret_cast<const T*>(&u), *y = reinterpret_cast<const T*>(&v);
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
      float r = wide(y[k]), d = wide(x[k]) - r;
      miss += d * d; size += r * r; largest = fmaxf(largest, fabsf(d));
    }
  }
  for (long long i = n / WIDTH * WIDTH + first; i < n; i += step) {
    float r = wide(b[i]), d = wide(a[i]) - r;
    miss += d * d; size += r * r; largest = fmaxf(largest, fabsf(d));
  }
  double m = miss, s = size;
  for (int lane = 16; lane; lane /= 2) {
    m += __shfl_down_sync(~0u, m, lane);
    s += __shfl_down_sync(~0u, s, lane);
    largest = fmaxf(largest, __shfl_down_sync(~0u, largest, lane));
  }
  __shared__ double misses[32], sizes[32];
  __shared__ float most[32];
  int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) { misses[warp] = m; sizes[warp] = s; most[warp] = largest; }
  __syncthreads();
  if (threadIdx.x == 0) {  // one thread of each block, because all add to the same line
    for (int w = 1; w < blockDim.x / 32; w++) { m += misses[w]; s += sizes[w]; largest = fmaxf(largest, most[w]); }
    atomicAdd(out, m);
    atomicAdd(out + 1, s);
    atomicMax(reinterpret_cast<unsigned long long*>(out + 2), __double_as_longlong((double)largest));
  }
}
// Reads everything, so that L2 holds nothing else, and nothing that would have to be written back.
extern "C" __global__ void flush(const uint4* a, long long n, unsigned* out) {
  unsigned x = 0;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) {
    uint4 u = a[i];
    x |= u.x | u.y | u.z | u.w;
  }
  if (x) *out = x;  // never: the buffer is zero
}
extern "C" __global__ void compare_float32(const float* a, const float* b, long long n, double* out) { compare(a, b, n, out); }
extern "C" __global__ void compare_float16(const half_bits* a, const half_bits* b, long long n, double* out) {
  compare(a, b, n, out);
}
extern "C" __global__ void compare_bfloat16(const bfloat_bits* a, const bfloat_bits* b, long long n, double* out) {
  compare(a, b, n, out);
}
"""
)


def compiled(name: str, source: str) -> bytes:
    """Return kernels compiled for the card. Their `name` is that of a file which the next runner of the card reads them from.
    Raises DriverError."""
    major, minor = torch.cuda.get_device_capability(0)
    arch = 10 * major + minor
    kept = Path(os.environ["TMPDIR"]) / f"{name}-sm_{arch}.cubin"
    if kept.exists():
        return kept.read_bytes()
    program = driver.check("nvrtcCreateProgram", nvrtc.nvrtcCreateProgram(source.encode(), f"{name}.cu".encode(), 0, [], []))
    options = [f"--gpu-architecture=sm_{arch}".encode()]
    driver.check("nvrtcCompileProgram", nvrtc.nvrtcCompileProgram(program, len(options), options))
    cubin: bytes = b" " * driver.check("nvrtcGetCUBINSize", nvrtc.nvrtcGetCUBINSize(program))
    driver.check("nvrtcGetCUBIN", nvrtc.nvrtcGetCUBIN(program, cubin))
    temporary = kept.with_suffix(f".{os.getpid()}")  # one runner, one thread
    temporary.write_bytes(cubin)
    temporary.rename(kept)
    return cubin


class Fused:
    """Our kernels in the current context, with the buffer that a flush reads, which is twice as large as L2."""

    def __init__(self) -> None:
        cubin = compiled("fused", _SOURCE)
        self._blocks = BLOCKS_PER_PROCESSOR * torch.cuda.get_device_properties(0).multi_processor_count
        self._kernels = {
            dtype: driver.Kernel(_binary(str(dtype).removeprefix("torch.")), cubin)
            for dtype in (torch.float32, torch.float16, torch.bfloat16)
        }
        parameters = (("a", "*i32"), ("n", "i64"), ("out", "*i32"))
        self._flush = driver.Kernel(driver.Binary("flush", parameters, 0, WARPS, 1, 0, 1, ()), cubin)
        words = 2 * torch.cuda.get_device_properties(0).L2_cache_size // 4
        buffer, out = (torch.zeros(n, dtype=torch.int32, device="cuda") for n in (words, 1))
        self._flushed = {"a": buffer, "n": words // 4, "out": out}

    def flush(self) -> None:
        """Enqueue a read of the whole buffer, after which L2 holds nothing of what was used before."""
        self._flush.launch((self._blocks, 1, 1), self._flushed, stream().cuda_stream)

    def sums(self, found: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
        """Enqueue what `comparison.quick_sums` computes, in one pass over memory where the tensors allow it."""
        kernel = self._kernels.get(exact.dtype)
        aligned = found.data_ptr() % 16 == 0 and exact.data_ptr() % 16 == 0
        if kernel is None or not (aligned and found.is_contiguous() and exact.is_contiguous()):
            return quick_sums(found, exact)
        out = torch.zeros(3, dtype=torch.float64, device=exact.device)
        blocks = min(self._blocks, 1 + exact.numel() // (32 * WARPS * 4))
        args = {"a": found, "b": exact, "n": exact.numel(), "out": out}
        kernel.launch((blocks, 1, 1), args, stream().cuda_stream)
        return out


def kept(numbers: torch.Tensor) -> torch.Tensor:
    """Enqueue a copy into memory of the host that no kernel is given: only one that makes up its address reaches it. It is void
    until somebody has waited."""
    host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
    return host.copy_(numbers, non_blocking=True)


def _binary(name: str) -> driver.Binary:
    """Return the facts of the comparison for the dtype `name`."""
    parameters = (("a", "*fp32"), ("b", "*fp32"), ("n", "i64"), ("out", "*fp64"))
    return driver.Binary(f"compare_{name}", parameters, 0, WARPS, 1, 0, 1, ())
