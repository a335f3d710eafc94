"""Plans for problems whose output elements are independent: pointwise, windows, gathers, epilogues of library operators."""

from __future__ import annotations

from benchmarks.corpus.kernels import Flat
from benchmarks.corpus.plans import FlatPlan, Plan
from envs.chains import has_bias, parse
from rlkernel.types import Problem

X = {"x": "x", "y": "y"}
LOAD = "x = tl.load(x_ptr + i, mask=m)\n"
GELU = "0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476))"


def chain_plan(problem: Problem) -> FlatPlan | None:
    """One kernel for an elementwise chain, from its own lines; None if the problem is no chain."""
    steps = parse(problem.source)
    if steps is None:
        return None
    body = LOAD + "".join(f"{step.triton}\n" for step in steps) + "tl.store(y_ptr + i, x, mask=m)"
    if has_bias(steps):
        return FlatPlan(Flat("chain", {"x": "x", "b": "self.bias", "y": "y"}, body, {"cols": "x.shape[1]"}))
    return FlatPlan(Flat("chain", X, body))


def _unary(name: str, value: str) -> FlatPlan:
    return FlatPlan(Flat(name, X, f"{LOAD}tl.store(y_ptr + i, {value}, mask=m)"))


def _matmul_epilogue(name: str, value: str, *, bias: bool = False, product: str = "torch.mm(x, self.weight)") -> FlatPlan:
    """The library's product, and the rest in one kernel."""
    load = LOAD + ("b = tl.load(b_ptr + i % cols, mask=m)\n" if bias else "")
    pointers = {"x": "x", "b": "self.bias", "y": "y"} if bias else X
    scalars = {"cols": "x.shape[1]"} if bias else {}
    before = f"x = {product}\ny = torch.empty_like(x)"
    return FlatPlan(Flat(name, pointers, f"{load}tl.store(y_ptr + i, {value}, mask=m)", scalars), before)


_SIGMOID_TANH = "2.0 * tl.sigmoid(2.0 * {0}) - 1.0"

PLANS: dict[str, tuple[Plan, ...]] = {
    "level1/add_scaled": (
        FlatPlan(
            Flat(
                "add_scaled",
                {"a": "x", "b": "y", "y": "out"},
                "tl.store(y_ptr + i, tl.load(a_ptr + i, mask=m) + alpha * tl.load(b_ptr + i, mask=m), mask=m)",
                {"alpha": "alpha"},
                "out.numel()",
            ),
            "out = torch.empty_like(x)",
            "return out",
        ),
    ),
    "level1/gelu": (_unary("gelu", GELU.format("x")),),
    "level1/leaky_relu": (_unary("leaky", "tl.where(x > 0, x, 0.1 * x)"), _unary("leaky", "tl.maximum(x, 0.1 * x)")),
    "level1/masked_fill": (
        FlatPlan(
            Flat(
                "negate_where",
                {"x": "x", "f": "mask", "y": "y"},
                LOAD + "flip = tl.load(f_ptr + i, mask=m)\ntl.store(y_ptr + i, tl.where(flip, -x, x), mask=m)",
            )
        ),
    ),
    "level1/softplus_half": (
        FlatPlan(
            Flat(
                "softplus",
                X,
                "x = tl.load(x_ptr + i, mask=m).to(tl.float32)\n"
                "x = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))\n"
                "tl.store(y_ptr + i, x.to(tl.float16), mask=m)",
            ),
            blocks=(1024, 2048, 4096),
        ),
    ),
    "level1/xor_int": (
        FlatPlan(
            Flat(
                "xor",
                {"a": "x", "b": "y", "y": "out"},
                "tl.store(y_ptr + i, tl.load(a_ptr + i, mask=m) ^ tl.load(b_ptr + i, mask=m), mask=m)",
                count="out.numel()",
            ),
            "out = torch.empty_like(x)",
            "return out",
        ),
    ),
    "level1/avg_pool1d": (
        FlatPlan(
            Flat(
                "mean_of_four",
                X,
                """
                first = (i // width) * size + (i % width) * 4
                total = tl.load(x_ptr + first, mask=m) + tl.load(x_ptr + first + 1, mask=m)
                total += tl.load(x_ptr + first + 2, mask=m) + tl.load(x_ptr + first + 3, mask=m)
                tl.store(y_ptr + i, total * 0.25, mask=m)
                """,
                {"size": "x.shape[2]", "width": "y.shape[2]"},
            ),
            "y = torch.empty((x.shape[0], x.shape[1], x.shape[2] // 4), device=x.device, dtype=x.dtype)",
        ),
    ),
    "level1/max_pool2d": (
        FlatPlan(
            Flat(
                "max_of_window",
                X,
                """
                first = (i // width) * 4 * width + (i % width) * 2
                a = tl.maximum(tl.load(x_ptr + first, mask=m), tl.load(x_ptr + first + 1, mask=m))
                first += 2 * width
                b = tl.maximum(tl.load(x_ptr + first, mask=m), tl.load(x_ptr + first + 1, mask=m))
                tl.store(y_ptr + i, tl.maximum(a, b), mask=m)
                """,
                {"width": "y.shape[3]"},
            ),
            "y = torch.empty((x.shape[0], x.shape[1], x.shape[2] // 2, x.shape[3] // 2), device=x.device, dtype=x.dtype)",
        ),
    ),
    "level1/depthwise_conv1d": (
        FlatPlan(
            Flat(
                "taps",
                {"x": "x", "w": "self.weight", "y": "y"},
                """
                t = i % size
                w = w_ptr + ((i // size) % channels) * 4
                total = tl.load(x_ptr + i, mask=m) * tl.load(w + 3, mask=m)
                for back in tl.static_range(1, 4):
                    x = tl.load(x_ptr + i - back, mask=m & (t >= back), other=0.0)
                    total += x * tl.load(w + 3 - back, mask=m)
                tl.store(y_ptr + i, total, mask=m)
                """,
                {"size": "x.shape[2]", "channels": "x.shape[1]"},
            )
        ),
    ),
    "level1/embedding": (
        FlatPlan(
            Flat(
                "gather",
                {"index": "index", "table": "self.table", "y": "y"},
                """
                row = tl.load(index_ptr + i // dim, mask=m, other=0)
                tl.store(y_ptr + i, tl.load(table_ptr + row * dim + i % dim, mask=m), mask=m)
                """,
                {"dim": "self.table.shape[1]"},
            ),
            "y = torch.empty((index.shape[0], self.table.shape[1]), device=index.device, dtype=self.table.dtype)",
        ),
    ),
    "level2/add_silu_half": (
        FlatPlan(
            Flat(
                "add_silu",
                {"a": "x", "b": "y", "y": "out"},
                "x = tl.load(a_ptr + i, mask=m).to(tl.float32) + tl.load(b_ptr + i, mask=m).to(tl.float32)\n"
                "tl.store(y_ptr + i, (x * tl.sigmoid(x) * 0.5).to(tl.float16), mask=m)",
                count="out.numel()",
            ),
            "out = torch.empty_like(x)",
            "return out",
            blocks=(1024, 2048, 4096),
        ),
    ),
    "level2/gelu_gate": (
        FlatPlan(
            Flat(
                "gate",
                X,
                f"""
                first = (i // cols) * 2 * cols + i % cols
                a = tl.load(x_ptr + first, mask=m)
                b = tl.load(x_ptr + first + cols, mask=m)
                tl.store(y_ptr + i, a * {GELU.format("b")}, mask=m)
                """,
                {"cols": "y.shape[1]"},
            ),
            "y = torch.empty((x.shape[0], x.shape[1] // 2), device=x.device, dtype=x.dtype)",
        ),
    ),
    "level2/quantize_int8": (
        FlatPlan(
            Flat(  # adding and taking away 1.5 * 2**23 rounds to the nearest integer, ties to even
                "quantize",
                X,
                """
                x = tl.load(x_ptr + i, mask=m) * 32.0
                x = (x + 12582912.0) - 12582912.0
                x = tl.minimum(tl.maximum(x, -128.0), 127.0)
                tl.store(y_ptr + i, x.to(tl.int8), mask=m)
                """,
            ),
            "y = torch.empty(x.shape, device=x.device, dtype=torch.int8)",
        ),
    ),
    "level2/conv2d_bias_relu": (
        FlatPlan(
            Flat(
                "bias_relu",
                {"x": "x", "b": "self.bias", "y": "y"},
                LOAD + "b = tl.load(b_ptr + (i // area) % channels, mask=m)\ntl.store(y_ptr + i, tl.maximum(x + b, 0.0), mask=m)",
                {"area": "x.shape[2] * x.shape[3]", "channels": "x.shape[1]"},
            ),
            "x = F.conv2d(x, self.weight, padding=1)\ny = torch.empty_like(x)",
        ),
    ),
    "level2/matmul_bias_relu": (_matmul_epilogue("bias_relu", "tl.maximum(x + b, 0.0)", bias=True),),
    "level2/matmul_scale_gelu": (_matmul_epilogue("scale_gelu", GELU.format("(x * 0.05)")),),
    "level2/matmul_residual": (
        FlatPlan(
            Flat(
                "residual_tanh",
                {"x": "x", "p": "p", "b": "self.bias", "y": "y"},
                LOAD
                + "z = x + tl.load(p_ptr + i, mask=m) * 0.02 + tl.load(b_ptr + i % cols, mask=m)\n"
                + f"tl.store(y_ptr + i, {_SIGMOID_TANH.format('z')}, mask=m)",
                {"cols": "x.shape[1]"},
            ),
            "p = torch.mm(x, self.weight)\ny = torch.empty_like(x)",
        ),
    ),
    "level3/gated_mlp": (
        FlatPlan(
            Flat(
                "silu_mul",
                {"g": "g", "u": "u", "y": "y"},
                "g = tl.load(g_ptr + i, mask=m)\ntl.store(y_ptr + i, g * tl.sigmoid(g) * tl.load(u_ptr + i, mask=m), mask=m)",
            ),
            "g, u = self.gate(x), self.up(x)\ny = torch.empty_like(g)",
            "return self.down(y)",
        ),
    ),
    "level3/lstm_cell": (
        FlatPlan(
            Flat(
                "cell",
                {"a": "a", "b": "b", "c": "c", "h": "h_next", "s": "c_next"},
                f"""
                first = (i // dim) * 4 * dim + i % dim
                z = tl.load(a_ptr + first, mask=m) + tl.load(b_ptr + first, mask=m)
                f = tl.load(a_ptr + first + dim, mask=m) + tl.load(b_ptr + first + dim, mask=m)
                g = tl.load(a_ptr + first + 2 * dim, mask=m) + tl.load(b_ptr + first + 2 * dim, mask=m)
                o = tl.load(a_ptr + first + 3 * dim, mask=m) + tl.load(b_ptr + first + 3 * dim, mask=m)
                state = tl.sigmoid(f) * tl.load(c_ptr + i, mask=m) + tl.sigmoid(z) * ({_SIGMOID_TANH.format("g")})
                tl.store(s_ptr + i, state, mask=m)
                tl.store(h_ptr + i, tl.sigmoid(o) * ({_SIGMOID_TANH.format("state")}), mask=m)
                """,
                {"dim": "c.shape[1]"},
                "c.numel()",
            ),
            "a, b = self.input(x), self.state(h)\nh_next, c_next = torch.empty_like(c), torch.empty_like(c)",
            "return h_next, c_next",
        ),
    ),
    "level3/rotary_pair": (
        FlatPlan(
            Flat(
                "rotate",
                {"q": "q", "k": "k", "angle": "angle", "u": "q_out", "v": "k_out"},
                """
                angle = tl.load(angle_ptr + i % period, mask=m)
                cos, sin = tl.cos(angle), tl.sin(angle)
                first = (i // half) * 2 * half + i % half
                a, b = tl.load(q_ptr + first, mask=m), tl.load(q_ptr + first + half, mask=m)
                tl.store(u_ptr + first, a * cos - b * sin, mask=m)
                tl.store(u_ptr + first + half, a * sin + b * cos, mask=m)
                a, b = tl.load(k_ptr + first, mask=m), tl.load(k_ptr + first + half, mask=m)
                tl.store(v_ptr + first, a * cos - b * sin, mask=m)
                tl.store(v_ptr + first + half, a * sin + b * cos, mask=m)
                """,
                {"half": "q.shape[2] // 2", "period": "angle.numel()"},
                "(q.numel() // 2)",
            ),
            "q_out, k_out = torch.empty_like(q), torch.empty_like(k)",
            "return q_out, k_out",
            blocks=(256, 512, 1024),
        ),
    ),
    "level3/linear_attention": (
        FlatPlan(
            Flat(
                "features",
                {"q": "q", "k": "k", "u": "fq", "v": "fk"},
                """
                q = tl.load(q_ptr + i, mask=m)
                tl.store(u_ptr + i, tl.where(q > 0, q + 1.0, tl.exp(q)), mask=m)
                k = tl.load(k_ptr + i, mask=m)
                tl.store(v_ptr + i, tl.where(k > 0, k + 1.0, tl.exp(k)), mask=m)
                """,
                count="q.numel()",
            ),
            "fq, fk = torch.empty_like(q), torch.empty_like(k)",
            "total = fq @ fk.sum(dim=1, keepdim=True).transpose(1, 2)\nreturn fq @ (fk.transpose(1, 2) @ v) / total",
        ),
    ),
    "level3/norm_mlp": (
        FlatPlan(
            Flat(
                "gelu",
                {"x": "z", "y": "y"},
                f"{LOAD}tl.store(y_ptr + i, {GELU.format('x')}, mask=m)",
            ),
            "z = self.up(F.layer_norm(x, (x.shape[1],), self.weight, self.bias))\ny = torch.empty_like(z)",
            "return x + self.down(y)",
        ),
    ),
}
