"""Our own CUDA kernels for the passes of `judging.errors.error_passes`: each reads every tensor once.

Torch's operators take about 70 reads and writes of a whole tensor for the first pass, and 60 for the second one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from rlkernel.evaluator.gpu import driver
from rlkernel.evaluator.gpu.fused import BLOCKS_PER_PROCESSOR, WARPS, WIDE, compiled
from rlkernel.evaluator.gpu.stopwatch import stream
from rlkernel.evaluator.judging.errors.error_passes import ByTorch, Passes, Sums
from rlkernel.evaluator.program.tensors import extent, overlapping

SIDES = 4
"""The output, and up to three further tensors."""
NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}
"""The dtypes of outputs, as the kernels' names have them."""
_SOURCE = (
    WIDE
    + f"\nconstexpr int SIDES = {SIDES}, WARPS = {WARPS};"
    + r"""
__device__ double wider(double x) { return x; }
template <typename T> __device__ double wider(T x) { return (double)wide(x); }
__device__ bool finite(double x) { return fabs(x) <= 1.7976931348623157e308; }

// The errors of one element: of the output, and of those further tensors that are there.
template <typename T> struct Element {
  double exact, found, side[SIDES];
  bool counts;
  __device__ Element(const T* a, const double* b, const double* c, const float* d, const float* e, long long i, double huge) {
    exact = b[i]; found = wider(a[i]);
    side[0] = found;
    side[1] = c ? c[i] : exact;
    side[2] = d ? (double)d[i] : exact;
    side[3] = e ? (double)e[i] : exact;
    counts = finite(found) && finite(exact) && fabs(found) <= huge;
  }
};

template <int N> __device__ void add_up(double* values, double* out) {
  __shared__ double parts[WARPS][N];
  for (int k = 0; k < N; k++) {
    double x = values[k];
    for (int lane = 16; lane; lane /= 2) x += __shfl_down_sync(~0u, x, lane);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32][k] = x;
  }
  __syncthreads();
  if (threadIdx.x < N) {
    double x = 0;
    for (int w = 0; w < WARPS; w++) x += parts[w][threadIdx.x];
    atomicAdd(out + threadIdx.x, x);
  }
}

// out: count, sums of exact^2, exact and found^2; of each side the squared errors and what is finite; last error x exact.
template <typename T> __device__ void sums(
    const T* a, const double* b, const double* c, const float* d, const float* e, long long n, double huge, double* out) {
  double total[5 + 2 * SIDES] = {};
  long long step = gridDim.x * (long long)blockDim.x;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step) {
    Element<T> one(a, b, c, d, e, i, huge);
    if (!one.counts) continue;
    double last = 0;
    total[0] += 1; total[1] += one.exact * one.exact; total[2] += one.exact; total[3] += one.found * one.found;
#pragma unroll
    for (int k = 0; k < SIDES; k++) {
      double miss = one.side[k] - one.exact;
      total[4 + 2 * k] += miss * miss;
      total[5 + 2 * k] += finite(one.side[k]);
      if (k == 0 || (k == 1 && c) || (k == 3 && e)) last = miss;
    }
    total[4 + 2 * SIDES] += last * one.exact;
  }
  add_up<5 + 2 * SIDES>(total, out);
}

// out: the sum of (exact - mean)^2; of each side the worst |error| / (|exact| + root). What is not finite shows in the sums.
template <typename T> __device__ void extremes(
    const T* a, const double* b, const double* c, const float* d, const float* e, long long n, double huge, double root,
    double mean, double* out) {
  double squares[1] = {}, worst[SIDES] = {};
  long long step = gridDim.x * (long long)blockDim.x;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step) {
    Element<T> one(a, b, c, d, e, i, huge);
    if (!one.counts) continue;
    double base = 1 / fmax(fabs(one.exact) + root, 1e-30), off = one.exact - mean;
    squares[0] += off * off;
#pragma unroll
    for (int k = 0; k < SIDES; k++) worst[k] = fmax(worst[k], fabs(one.side[k] - one.exact) * base);
  }
  add_up<1>(squares, out);
  for (int k = 0; k < SIDES; k++) {
    double x = worst[k];
    for (int lane = 16; lane; lane /= 2) x = fmax(x, __shfl_down_sync(~0u, x, lane));
    if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<unsigned long long*>(out + 1 + k), __double_as_longlong(x));
  }
}

#define BOTH(T, NAME) \
  extern "C" __global__ void sums_##NAME(const T* a, const double* b, const double* c, const float* d, const float* e, \
      long long n, double huge, double* out) { sums(a, b, c, d, e, n, huge, out); } \
  extern "C" __global__ void extremes_##NAME(const T* a, const double* b, const double* c, const float* d, const float* e, \
      long long n, double huge, double root, double mean, double* out) { extremes(a, b, c, d, e, n, huge, root, mean, out); }
BOTH(float, float32)
BOTH(half_bits, float16)
BOTH(bfloat_bits, bfloat16)
"""
)
_TENSORS = (("a", "*fp32"), ("b", "*fp64"), ("c", "*fp64"), ("d", "*fp32"), ("e", "*fp32"), ("n", "i64"), ("huge", "fp64"))
_MORE = {"sums": (("out", "*fp64"),), "extremes": (("root", "fp64"), ("mean", "fp64"), ("out", "*fp64"))}


class _Kernels:
    """The kernels in the current context."""

    def __init__(self) -> None:
        cubin = compiled("fused_errors", _SOURCE)
        self._blocks = BLOCKS_PER_PROCESSOR * torch.cuda.get_device_properties(0).multi_processor_count
        self._kernels = {
            (what, dtype): driver.Kernel(driver.Binary(f"{what}_{name}", _TENSORS + more, 0, WARPS, 1, 0, 1, ()), cubin)
            for what, more in _MORE.items()
            for dtype, name in NAMES.items()
        }

    def launch(self, what: str, given: dict[str, object], count: int, results: int) -> list[float]:
        """So many results of one kernel, for which the card is waited for."""
        found = given["a"]
        assert isinstance(found, torch.Tensor)
        out = torch.zeros(results, dtype=torch.float64, device=found.device)
        grid = (min(self._blocks, 1 + count // (32 * WARPS * 4)), 1, 1)
        self._kernels[what, found.dtype].launch(grid, {**given, "out": out}, stream().cuda_stream)
        numbers: list[float] = out.tolist()
        return numbers


@functools.cache
def kernels() -> _Kernels:
    """The kernels of this process, which a runner loads when it starts."""
    return _Kernels()


class _Fused:
    """`Passes` by the kernels."""

    def __init__(self, tensors: Sequence[torch.Tensor], huge: float) -> None:
        found, exact, *others = tensors
        nudged = [t for t in others if t.dtype is torch.float64]
        rounded = [t for t in others if t.dtype is torch.float32]
        self._there = [0, *([1] if nudged else []), *([2, 3] if rounded else [])]
        near, cut = rounded or (0, 0)
        self._count = found.numel()
        self._given: dict[str, object] = {
            "a": found, "b": exact, "c": nudged[0] if nudged else 0, "d": near, "e": cut, "n": self._count, "huge": huge,
        }  # fmt: skip

    def sums(self) -> Sums:
        """See `Passes`."""
        count, size, total, given, *sides, along = kernels().launch("sums", self._given, self._count, 5 + 2 * SIDES)
        return Sums(count, size, total, given, tuple((sides[2 * k], sides[2 * k + 1]) for k in self._there), along)

    def extremes(self, root: float, mean: float) -> tuple[float, list[float]]:
        """See `Passes`."""
        given = {**self._given, "root": root, "mean": mean}
        squares, *worst = kernels().launch("extremes", given, self._count, 1 + SIDES)
        return squares, [worst[k] for k in self._there]


def passes(tensors: Sequence[torch.Tensor], huge: float) -> Passes:
    """The passes by our kernels where these know the tensors' dtypes and all lie in memory alike, without gaps."""
    return _Fused(tensors, huge) if tensors[0].is_cuda and fits(tensors) else ByTorch(tensors, huge)


def fits(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether an output, its exact values and further tensors are such as the kernels read: the output in float32 or half
    precision, the exact values in float64; then up to one tensor in float64, and two or none in float32."""
    found, exact, *others = tensors
    kinds = [t.dtype for t in others]
    known = found.dtype in NAMES and exact.dtype is torch.float64
    known &= kinds in (
        [], [torch.float64], [torch.float32, torch.float32], [torch.float64, torch.float32, torch.float32],
    )  # fmt: skip
    alike = all(t.stride() == found.stride() for t in tensors)
    return known and alike and extent(found.shape, found.stride()) == found.numel() and not overlapping(found)
