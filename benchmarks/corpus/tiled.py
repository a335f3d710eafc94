"""Plans with tiles: matrix products, convolutions, transposed memory, columns, scans and losses in two kernels."""

from __future__ import annotations

from benchmarks.corpus.kernels import Product, Tile
from benchmarks.corpus.plans import Plan, ProductPlan, TextPlan, settings

_MN = "m, k = {a}.shape\nn = {b}.shape[1]\nc = torch.empty((m, n), device={a}.device, dtype={a}.dtype)"
_LINEAR = _MN.format(a="x", b="self.weight")

_TRANSPOSE = """
@triton.jit
def transpose(x_ptr, y_ptr, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)[:, None]
    c = tl.program_id(1) * BC + tl.arange(0, BC)[None, :]
    x = tl.load(x_ptr + r * cols + c, mask=(r < rows) & (c < cols))
    r = tl.program_id(0) * BR + tl.arange(0, BR)[None, :]
    c = tl.program_id(1) * BC + tl.arange(0, BC)[:, None]
    tl.store(y_ptr + c * rows + r, tl.trans(x), mask=(r < rows) & (c < cols))
"""
_ADD_TRANSPOSED = """
@triton.jit
def add_strided(x_ptr, y_ptr, out_ptr, rows, cols, down, right, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)[:, None]
    c = tl.program_id(1) * BC + tl.arange(0, BC)[None, :]
    m = (r < rows) & (c < cols)
    x = tl.load(x_ptr + r * cols + c, mask=m) + tl.load(y_ptr + r * down + c * right, mask=m)
    tl.store(out_ptr + r * cols + c, x, mask=m)
"""
_COLUMN_ATOMIC = """
@triton.jit
def add_rows(x_ptr, y_ptr, rows, cols, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.$TYPE)
    for k in range(CHUNK):
        r = tl.program_id(1) * CHUNK + k
        total += tl.load(x_ptr + r * cols + c, mask=(c < cols) & (r < rows), other=0)
    tl.atomic_add(y_ptr + c, total, mask=c < cols)
"""
_COLUMN_PARTIAL = """
@triton.jit
def partial_sums(x_ptr, p_ptr, rows, cols, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * CHUNK
    total = tl.zeros((BLOCK,), dtype=tl.$TYPE)
    for r in range(first, tl.minimum(first + CHUNK, rows)):
        total += tl.load(x_ptr + r * cols + c, mask=c < cols, other=0)
    tl.store(p_ptr + tl.program_id(1) * cols + c, total, mask=c < cols)

@triton.jit
def final_sums(p_ptr, y_ptr, parts, cols, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.$TYPE)
    for part in range(parts):
        total += tl.load(p_ptr + part * cols + c, mask=c < cols, other=0)
    tl.store(y_ptr + c, total, mask=c < cols)
"""
_COLUMN_SOFTMAX = """
@triton.jit
def softmax(x_ptr, y_ptr, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)[None, :]
    r = tl.arange(0, BR)[:, None]
    m = (r < rows) & (c < cols)
    x = tl.load(x_ptr + r * cols + c, mask=m, other=float("-inf"))
    x = tl.where(c < cols, x, 0.0)
    e = tl.exp(x - tl.max(x, axis=0)[None, :])
    tl.store(y_ptr + r * cols + c, e / tl.sum(e, axis=0)[None, :], mask=m)
"""
_COLUMN_SOFTMAX_LOOP = """
@triton.jit
def softmax(x_ptr, y_ptr, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)[None, :]
    peak = tl.full((BC,), float("-inf"), tl.float32)
    for first in range(0, rows, BR):
        r = first + tl.arange(0, BR)[:, None]
        x = tl.load(x_ptr + r * cols + c, mask=(r < rows) & (c < cols), other=float("-inf"))
        peak = tl.maximum(peak, tl.max(tl.where(c < cols, x, 0.0), axis=0))
    total = tl.zeros((BC,), dtype=tl.float32)
    for first in range(0, rows, BR):
        r = first + tl.arange(0, BR)[:, None]
        x = tl.load(x_ptr + r * cols + c, mask=(r < rows) & (c < cols), other=float("-inf"))
        total += tl.sum(tl.exp(x - peak[None, :]), axis=0)
    for first in range(0, rows, BR):
        r = first + tl.arange(0, BR)[:, None]
        m = (r < rows) & (c < cols)
        x = tl.load(x_ptr + r * cols + c, mask=m, other=0.0)
        tl.store(y_ptr + r * cols + c, tl.exp(x - peak[None, :]) / total[None, :], mask=m)
"""
_SCAN = """
@triton.jit
def scan(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    tl.store(y_ptr + row * cols + c, tl.cumsum(x, axis=0), mask=c < cols)
"""
_SCAN_LOOP = """
@triton.jit
def scan(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    before = 0.0
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
        tl.store(y_ptr + row * cols + c, tl.cumsum(x, axis=0) + before, mask=c < cols)
        before += tl.sum(x, axis=0)
"""
_ARGMAX = """
@triton.jit
def argmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=float("-inf"))
    tl.store(y_ptr + row, tl.argmax(x, axis=0).to(tl.int64))
"""
_ARGMAX_LOOP = """
@triton.jit
def argmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=float("-inf"))
        place = tl.where(x > best, c, place)
        best = tl.maximum(x, best)
    first = tl.min(tl.where(best == tl.max(best, axis=0), place, cols), axis=0)
    tl.store(y_ptr + row, first.to(tl.int64))
"""
_SQUARES = """
@triton.jit
def partial_squares(x_ptr, y_ptr, part_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.load(x_ptr + i, mask=i < n, other=0.0) - tl.load(y_ptr + i, mask=i < n, other=0.0)
    tl.store(part_ptr + tl.program_id(0), tl.sum(d * d, axis=0))

@triton.jit
def mean_of_parts(part_ptr, out_ptr, parts, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, parts, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(part_ptr + i, mask=i < parts, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)
"""
_CONV1D = """
@triton.jit
def conv(x_ptr, w_ptr, y_ptr, channels, size, BO: tl.constexpr, BC: tl.constexpr, BS: tl.constexpr):
    sample = tl.program_id(0)
    t = tl.program_id(1) * BS + tl.arange(0, BS)[None, :]
    out = tl.arange(0, BO)[:, None]
    total = tl.zeros((BO, BS), dtype=tl.float32)
    for first in range(0, channels, BC):
        c = first + tl.arange(0, BC)
        for tap in range(3):
            s = t + tap - 1
            inside = (c[:, None] < channels) & (s >= 0) & (s < size)
            x = tl.load(x_ptr + (sample * channels + c[:, None]) * size + s, mask=inside, other=0.0)
            known = (out < channels) & (c[None, :] < channels)
            w = tl.load(w_ptr + (out * channels + c[None, :]) * 3 + tap, mask=known, other=0.0)
            total = tl.dot(w, x, total, input_precision="ieee")
    tl.store(y_ptr + (sample * channels + out) * size + t, total, mask=(out < channels) & (t < size))
"""
_CONV2D = """
@triton.jit
def conv(x_ptr, w_ptr, y_ptr, channels, height, width, BO: tl.constexpr, BC: tl.constexpr, BS: tl.constexpr):
    sample = tl.program_id(0)
    i = tl.program_id(1) * BS + tl.arange(0, BS)[None, :]
    out = tl.arange(0, BO)[:, None]
    total = tl.zeros((BO, BS), dtype=tl.float32)
    for first in range(0, channels, BC):
        c = first + tl.arange(0, BC)
        for tap in range(9):
            r, s = i // width + tap // 3 - 1, i % width + tap % 3 - 1
            inside = (c[:, None] < channels) & (r >= 0) & (r < height) & (s >= 0) & (s < width)
            x = tl.load(x_ptr + ((sample * channels + c[:, None]) * height + r) * width + s, mask=inside, other=0.0)
            known = (out < channels) & (c[None, :] < channels)
            w = tl.load(w_ptr + (out * channels + c[None, :]) * 9 + tap, mask=known, other=0.0)
            total = tl.dot(w, x, total, input_precision="ieee")
    area = height * width
    tl.store(y_ptr + (sample * channels + out) * area + i, total, mask=(out < channels) & (i < area))
"""
_GATHER = """
@triton.jit
def pick(x_ptr, index_ptr, y_ptr, cols, picks, BC: tl.constexpr, BP: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BC)
    p = tl.arange(0, BP)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    index = tl.load(index_ptr + row * picks + p, mask=p < picks, other=0).to(tl.int32)
    tl.store(y_ptr + row * picks + p, tl.gather(x, index, axis=0), mask=p < picks)
"""
_TILE_GRID = "(triton.cdiv(rows, $BR), triton.cdiv(cols, $BC))"
_TILES = settings(BR=(32, 64), BC=(32, 64), WARPS=(4, 8))
_PARTIAL_FORWARD = """
    rows, cols = x.shape
    parts = triton.cdiv(rows, $CHUNK)
    p = torch.empty((parts, cols), device=x.device, dtype=torch.$TYPE)
    y = torch.empty(cols, device=x.device, dtype=torch.$TYPE)
    partial_sums[(triton.cdiv(cols, $BLOCK), parts)](x, p, rows, cols, CHUNK=$CHUNK, BLOCK=$BLOCK, num_warps=$WARPS)
    final_sums[(triton.cdiv(cols, $BLOCK),)](p, y, parts, cols, BLOCK=$BLOCK, num_warps=$WARPS)
    return y
"""
_ATOMIC_FORWARD = """
    rows, cols = x.shape
    y = torch.zeros(cols, device=x.device, dtype=torch.$TYPE)
    grid = (triton.cdiv(cols, $BLOCK), triton.cdiv(rows, $CHUNK))
    add_rows[grid](x, y, rows, cols, CHUNK=$CHUNK, BLOCK=$BLOCK, num_warps=$WARPS)
    return y
"""
_COLUMN_SIZES = settings(BLOCK=(128, 256), CHUNK=(64, 128), WARPS=(2, 4))


def _typed(text: str, name: str) -> str:
    return text.replace("$TYPE", name)


def _row_scan(kernel: str, output: str, width: str) -> TextPlan:
    looped = settings(BLOCK=(1024, 2048), WARPS=(4, 8))
    name = "scan" if "def scan" in kernel else "argmax"
    forward = f"{output}\n{name}[(x.shape[0],)](x, y, x.shape[1], BLOCK={width}, num_warps=$WARPS)\nreturn y"
    return TextPlan(kernel, forward, looped if "$BLOCK" in width else settings(WARPS=(4, 8, 16)))


_WHOLE = "triton.next_power_of_2(x.shape[1])"
_INDICES = "y = torch.empty(x.shape[0], device=x.device, dtype=torch.int64)"

PLANS: dict[str, tuple[Plan, ...]] = {
    "level1/matmul": (ProductPlan(Product("matmul", "a", "b"), _MN.format(a="a", b="b")),),
    "level1/matmul_half": (
        ProductPlan(
            Product("matmul", "a", "b"),
            _MN.format(a="a", b="b"),
            tiles=(
                Tile(64, 64, 32, 4),
                Tile(128, 128, 32, 8),
                Tile(128, 64, 64, 4),
                Tile(64, 128, 32, 4, 4),
                Tile(128, 128, 64, 8),
            ),
        ),
    ),
    "level1/batched_matmul": (
        ProductPlan(
            Product("bmm", "a", "b", batch="a.shape[0]"),
            "m, k, n = a.shape[1], a.shape[2], b.shape[2]\nc = torch.empty((a.shape[0], m, n), device=a.device, dtype=a.dtype)",
        ),
    ),
    "level2/matmul_bias_relu": (
        ProductPlan(
            Product(
                "linear_relu",
                "x",
                "self.weight",
                epilogue="total = tl.maximum(total + tl.load(bias_ptr + cols, mask=cols < N, other=0.0), 0.0)",
                pointers={"bias": "self.bias"},
            ),
            _LINEAR,
        ),
    ),
    "level2/matmul_scale_gelu": (
        ProductPlan(
            Product(
                "product_gelu",
                "x",
                "self.weight",
                epilogue="total *= 0.05\ntotal = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))",
            ),
            _LINEAR,
        ),
    ),
    "level2/matmul_residual": (
        ProductPlan(
            Product(
                "product_residual",
                "x",
                "self.weight",
                epilogue="""
                total = total * 0.02 + tl.load(bias_ptr + cols, mask=cols < N, other=0.0)
                total += tl.load(a_ptr + rows * K + cols, mask=keep, other=0.0)
                total = 2.0 * tl.sigmoid(2.0 * total) - 1.0
                """,
                pointers={"bias": "self.bias"},
            ),
            _LINEAR,
        ),
    ),
    "level2/matmul_row_max": (ProductPlan(Product("matmul", "x", "self.weight"), _LINEAR, "return torch.amax(c, dim=1)"),),
    "level1/transpose": (
        TextPlan(
            _TRANSPOSE,
            f"""
            rows, cols = x.shape
            y = torch.empty((cols, rows), device=x.device, dtype=x.dtype)
            transpose[{_TILE_GRID}](x, y, rows, cols, BR=$BR, BC=$BC, num_warps=$WARPS)
            return y
            """,
            _TILES,
        ),
    ),
    "level1/add_transposed": (
        TextPlan(
            _ADD_TRANSPOSED,
            f"""
            rows, cols = x.shape
            out = torch.empty((rows, cols), device=x.device, dtype=x.dtype)
            add_strided[{_TILE_GRID}](x, y, out, rows, cols, y.stride(0), y.stride(1), BR=$BR, BC=$BC, num_warps=$WARPS)
            return out
            """,
            _TILES,
        ),
    ),
    "level1/column_sum": (
        TextPlan(_typed(_COLUMN_ATOMIC, "float32"), _typed(_ATOMIC_FORWARD, "float32"), _COLUMN_SIZES),
        TextPlan(_typed(_COLUMN_PARTIAL, "float32"), _typed(_PARTIAL_FORWARD, "float32"), _COLUMN_SIZES),
    ),
    "level1/column_sum_int": (
        TextPlan(_typed(_COLUMN_ATOMIC, "int64"), _typed(_ATOMIC_FORWARD, "int64"), _COLUMN_SIZES),
        TextPlan(_typed(_COLUMN_PARTIAL, "int64"), _typed(_PARTIAL_FORWARD, "int64"), _COLUMN_SIZES),
    ),
    "level1/softmax_columns": (
        TextPlan(
            _COLUMN_SOFTMAX,
            """
            rows, cols = x.shape
            y = torch.empty_like(x)
            height = triton.next_power_of_2(rows)
            softmax[(triton.cdiv(cols, $BC),)](x, y, rows, cols, BR=height, BC=$BC, num_warps=$WARPS)
            return y
            """,
            settings(BC=(8, 16), WARPS=(4, 8)),
        ),
        TextPlan(
            _COLUMN_SOFTMAX_LOOP,
            """
            rows, cols = x.shape
            y = torch.empty_like(x)
            softmax[(triton.cdiv(cols, $BC),)](x, y, rows, cols, BR=$BR, BC=$BC, num_warps=$WARPS)
            return y
            """,
            settings(BR=(32, 64), BC=(32,), WARPS=(4, 8)),
        ),
    ),
    "level1/cumsum": (
        _row_scan(_SCAN, "y = torch.empty_like(x)", _WHOLE),
        _row_scan(_SCAN_LOOP, "y = torch.empty_like(x)", "$BLOCK"),
    ),
    "level1/row_argmax": (_row_scan(_ARGMAX, _INDICES, _WHOLE), _row_scan(_ARGMAX_LOOP, _INDICES, "$BLOCK")),
    "level1/mse_loss": (
        TextPlan(
            _SQUARES,
            """
            n = x.numel()
            parts = triton.cdiv(n, $SIZE)
            part = torch.empty(parts, device=x.device, dtype=torch.float32)
            out = torch.empty((), device=x.device, dtype=torch.float32)
            partial_squares[(parts,)](x, y, part, n, BLOCK=$SIZE, num_warps=$WARPS)
            mean_of_parts[(1,)](part, out, parts, n, BLOCK=1024, num_warps=$WARPS)
            return out
            """,
            settings(SIZE=(2048, 4096, 8192), WARPS=(4, 8)),
        ),
    ),
    "level1/conv1d": (
        TextPlan(
            _CONV1D,
            """
            batch, channels, size = x.shape
            y = torch.empty_like(x)
            bo = max(16, triton.next_power_of_2(channels))
            grid = (batch, triton.cdiv(size, $BS))
            conv[grid](x, self.weight, y, channels, size, BO=bo, BC=$BC, BS=$BS, num_warps=$WARPS)
            return y
            """,
            settings(BS=(64, 128), BC=(16,), WARPS=(4, 8)),
        ),
    ),
    "level1/conv2d": (
        TextPlan(
            _CONV2D,
            """
            batch, channels, height, width = x.shape
            y = torch.empty_like(x)
            grid = (batch, triton.cdiv(height * width, $BS))
            bo = max(16, triton.next_power_of_2(channels))
            conv[grid](x, self.weight, y, channels, height, width, BO=bo, BC=$BC, BS=$BS, num_warps=$WARPS)
            return y
            """,
            settings(BS=(64, 128), BC=(16,), WARPS=(4, 8)),
        ),
    ),
    "level1/gather_columns": (
        TextPlan(
            _GATHER,
            """
            y = torch.empty(index.shape, device=x.device, dtype=x.dtype)
            bc, bp = triton.next_power_of_2(x.shape[1]), triton.next_power_of_2(index.shape[1])
            pick[(x.shape[0],)](x, index, y, x.shape[1], index.shape[1], BC=bc, BP=bp, num_warps=$WARPS)
            return y
            """,
            settings(WARPS=(1, 2, 4, 8)),
        ),
    ),
}
