"""Plans for problems that reduce rows: sums, norms, softmax, losses, and the row part of larger ones."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.corpus.elementwise import GELU
from benchmarks.corpus.kernels import Flat, Reduce, Rows
from benchmarks.corpus.plans import Plan, RowPlan

X = {"x": "x", "y": "y"}
LOAD = "x = tl.load(x_ptr + row * cols + c, mask=m, other=0.0)\n"
EACH = "tl.store(y_ptr + row * cols + c, {0}, mask=m)\n"
LAST = "tl.store(y_ptr + row, {0})\n"
PER_ROW = "y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)"

PEAK = Reduce("peak", "max", "x")
EXP_SUM = Reduce("total", "sum", "tl.exp(x - peak)")
SOFTMAX = (PEAK, EXP_SUM)
SOFTMAX_EACH = EACH.format("tl.exp(x - peak) / total")
MEAN = (Reduce("total", "sum", "x"), "mean = total / cols")
VARIANCE = Reduce("squares", "sum", "(x - mean) * (x - mean)")
NORM = (*MEAN, VARIANCE, "scale = 1.0 / tl.sqrt(squares / cols + 1e-5)")
RMS = (Reduce("squares", "sum", "x * x"), "scale = 1.0 / tl.sqrt(squares / cols + 1e-6)")
WEIGHT = "w = tl.load(w_ptr + c, mask=m, other=0.0)\n"
BIAS = "b = tl.load(b_ptr + c, mask=m, other=0.0)\n"
XWY = {"x": "x", "w": "self.weight", "y": "y"}
XWBY = {"x": "x", "w": "self.weight", "b": "self.bias", "y": "y"}
NO_REGISTERS: tuple[int, ...] = ()
LOOPED = ((1024, 4), (2048, 8), (4096, 8), (1024, 8), (2048, 16), (4096, 16))


def _scalar(
    name: str, steps: tuple[Reduce | str, ...], value: str, *, pointers: Mapping[str, str] = X, load: str = LOAD
) -> RowPlan:
    """A plan whose output has one number per row of x."""
    return RowPlan(Rows(name, pointers, load, steps, last=LAST.format(value)), PER_ROW)


def _each(name: str, steps: tuple[Reduce | str, ...], each: str, *, pointers: Mapping[str, str] = X, load: str = LOAD) -> RowPlan:
    """A plan whose output has as many numbers per row as x has."""
    return RowPlan(Rows(name, pointers, load, steps, each))


def _group_norm(name: str, value: str, x: str, before: str, pointers: Mapping[str, str], load: str = "") -> RowPlan:
    """Four groups of channels; a row is one group of one sample, too long for registers."""
    channel = "channel = (row % 4) * (cols // area) + c // area\n"
    affine = "w = tl.load(w_ptr + channel, mask=m)\nb = tl.load(b_ptr + channel, mask=m)\n"
    kernel = Rows(
        name, pointers, LOAD, NORM, channel + affine + load + EACH.format(value),
        scalars={"area": f"{x}[0, 0].numel()"}, rows=f"{x}.shape[0] * 4", cols=f"{x}[0].numel() // 4",
    )  # fmt: skip
    return RowPlan(kernel, before, registers=NO_REGISTERS, looped=LOOPED)


def _attention(mask: str, before: str) -> RowPlan:
    """Library products around a softmax over keys."""
    load = f"x = tl.load(x_ptr + row * cols + c, mask=m, other=0.0) * scale\n{mask}"
    kernel = Rows(
        "softmax", {"x": "s", "y": "p"}, load, SOFTMAX, SOFTMAX_EACH,
        scalars={"scale": "HEAD ** -0.5"}, rows="s.shape[0] * s.shape[1]", cols="s.shape[2]",
    )  # fmt: skip
    looped = ((256, 4), (512, 4), (512, 8))
    return RowPlan(kernel, f"{before}\np = torch.empty_like(s)", "return p @ v", registers=(2, 4, 8), looped=looped)


def _squeeze_excite() -> RowPlan:
    mean = Rows(
        "channel_mean", {"x": "x", "y": "mean"}, LOAD, MEAN, last=LAST.format("mean"), rows="mean.numel()", cols="x.shape[2]"
    )
    scale = Flat(
        "gate_channels",
        {"x": "x", "g": "gate", "y": "y"},
        "g = tl.load(g_ptr + i // size, mask=m)\ntl.store(y_ptr + i, tl.load(x_ptr + i, mask=m) * tl.sigmoid(g), mask=m)",
        {"size": "x.shape[2]"},
    )
    before = "mean = torch.empty((x.shape[0], x.shape[1]), device=x.device, dtype=x.dtype)"
    between = "gate = self.up(F.relu(self.down(mean)))\ny = torch.empty_like(x)"
    return RowPlan(mean, before, beside=scale, between=between)


def _norm_mlp() -> RowPlan:
    norm = Rows(
        "norm",
        {"x": "x", "w": "self.weight", "b": "self.bias", "y": "u"},
        LOAD,
        NORM,
        WEIGHT + BIAS + EACH.format("(x - mean) * scale * w + b"),
    )
    gelu = Flat(
        "gelu",
        {"x": "z", "y": "y"},
        f"x = tl.load(x_ptr + i, mask=m)\ntl.store(y_ptr + i, {GELU.format('x')}, mask=m)",
    )
    between = "z = self.up(u)\ny = torch.empty_like(z)"
    return RowPlan(norm, "u = torch.empty_like(x)", "return x + self.down(y)", registers=(2, 4, 8), looped=((256, 2), (512, 4)),
                   beside=gelu, between=between)  # fmt: skip


_PAIR = "x = tl.load(x_ptr + row * cols + c, mask=m, other=0.0)\n"
_LEVEL1: dict[str, tuple[Plan, ...]] = {
    "level1/softmax": (_each("softmax", SOFTMAX, SOFTMAX_EACH),),
    "level1/log_softmax": (_each("log_softmax", SOFTMAX, EACH.format("x - peak - tl.log(total)")),),
    "level1/layer_norm": (
        _each("layer_norm", NORM, WEIGHT + BIAS + EACH.format("(x - mean) * scale * w + b"), pointers=XWBY),
    ),
    "level1/rms_norm": (_each("rms_norm", RMS, WEIGHT + EACH.format("x * scale * w"), pointers=XWY),),
    "level1/l2_normalize": (
        _each("normalize", (RMS[0], "length = tl.maximum(tl.sqrt(squares), 1e-12)"), EACH.format("x / length")),
    ),
    "level1/row_sum": (_scalar("row_sum", MEAN[:1], "total"),),
    "level1/row_max": (_scalar("row_max", (PEAK,), "peak"),),
    "level1/row_variance": (_scalar("row_variance", (*MEAN, VARIANCE), "squares / (cols - 1)"),),
    "level1/matvec": (
        _scalar("dot_rows", (Reduce("total", "sum", "x * w"),), "total", pointers=XWY, load=LOAD + WEIGHT),
    ),
    "level1/smooth_l1_loss": (
        RowPlan(
            Rows(
                "huber", {"x": "x", "t": "y", "y": "out"},
                LOAD + "d = tl.abs(x - tl.load(t_ptr + row * cols + c, mask=m, other=0.0))\n",
                (Reduce("total", "sum", "tl.where(d < 1.0, 0.5 * d * d, d - 0.5)"),), last=LAST.format("total"),
            ),
            PER_ROW.replace("y =", "out ="), "return out",
        ),
    ),
    "level1/cross_entropy": (
        RowPlan(
            Rows(
                "cross_entropy", {"x": "logits", "t": "target", "y": "y"}, LOAD, SOFTMAX,
                last="x = tl.load(x_ptr + row * cols + tl.load(t_ptr + row))\n" + LAST.format("peak + tl.log(total) - x"),
                rows="logits.shape[0]", cols="logits.shape[1]",
            ),
            "y = torch.empty(logits.shape[0], device=logits.device, dtype=logits.dtype)",
        ),
    ),
    "level1/group_norm": (
        _group_norm("group_norm", "(x - mean) * scale * w + b", "x", "y = torch.empty_like(x)", XWBY),
    ),
}  # fmt: skip
_LEVEL2: dict[str, tuple[Plan, ...]] = {
    "level2/center_relu": (_each("center_relu", MEAN, EACH.format("tl.maximum(x - mean, 0.0)")),),
    "level2/exp_row_sum_bias": (
        _scalar("log_sum_exp", (*SOFTMAX, "value = peak + tl.log(total)"), "value * value",
                pointers={"x": "x", "b": "self.bias", "y": "y"},
                load="x = tl.load(x_ptr + row * cols + c, mask=m, other=0.0) + tl.load(b_ptr + c, mask=m, other=0.0)\n"),
    ),
    "level2/layer_norm_gelu": (
        _each("norm_gelu", NORM,
              WEIGHT + BIAS + "z = (x - mean) * scale * w + b\n" + EACH.format(GELU.format("z")), pointers=XWBY),
    ),
    "level2/residual_rms_norm": (
        RowPlan(
            Rows(
                "residual_rms", {"x": "x", "r": "y", "w": "self.weight", "y": "out"},
                LOAD + "x += tl.load(r_ptr + row * cols + c, mask=m, other=0.0)\n", RMS, WEIGHT + EACH.format("x * scale * w"),
            ),
            "out = torch.empty_like(x)", "return out",
        ),
    ),
    "level2/scale_bias_softmax": (
        _each("scaled_softmax", SOFTMAX, SOFTMAX_EACH, pointers={"x": "x", "b": "self.bias", "y": "y"},
              load=LOAD + "x = x * 0.5 + tl.load(b_ptr + c, mask=m, other=0.0)\n"),
    ),
    "level2/scaled_masked_softmax": (
        _each("masked_softmax", SOFTMAX, SOFTMAX_EACH, pointers={"x": "x", "f": "mask", "y": "y"},
              load=LOAD + "hide = tl.load(f_ptr + row * cols + c, mask=m, other=0)\nx = tl.where(hide, -1e9, x * 0.125)\n"),
    ),
    "level2/matmul_row_max": (
        RowPlan(
            Rows("row_max", {"x": "z", "y": "y"}, LOAD, (PEAK,), last=LAST.format("peak"), cols="z.shape[1]"),
            "z = torch.mm(x, self.weight)\n" + PER_ROW, looped=((256, 4), (512, 4), (1024, 8)),
        ),
    ),
}  # fmt: skip
_LEVEL3: dict[str, tuple[Plan, ...]] = {
    "level3/attention_head": (
        _attention("", "q, k, v = self.query(x), self.key(x), self.value(x)\ns = q @ k.transpose(1, 2)"),
    ),
    "level3/causal_attention": (
        _attention('x = tl.where(c <= row % cols, x, float("-inf"))\n', "s = torch.bmm(q, k.transpose(1, 2))"),
    ),
    "level3/gated_norm": (
        _each("gated_rms", RMS, WEIGHT + EACH.format("x * scale * w"),
              pointers={"x": "x", "g": "gate", "w": "self.weight", "y": "y"},
              load=LOAD + "g = tl.load(g_ptr + row * cols + c, mask=m, other=0.0)\nx = x * g * tl.sigmoid(g)\n"),
    ),
    "level3/router": (
        RowPlan(
            Rows(
                "route", {"x": "z", "y": "y", "t": "top"}, LOAD, SOFTMAX, SOFTMAX_EACH,
                "tl.store(t_ptr + row, 1.0 / total)", cols="z.shape[1]",
            ),
            "z = self.gate(x)\ny = torch.empty_like(z)\ntop = torch.empty(z.shape[0], device=z.device, dtype=z.dtype)",
            'return {"probability": y, "confidence": top}', registers=(1, 2, 4), looped=((32, 1), (64, 2)),
        ),
    ),
    "level3/row_statistics": (
        RowPlan(
            Rows(
                "statistics", {"x": "x", "w": "self.weight", "y": "y", "a": "mean", "d": "std"}, LOAD,
                (*MEAN, VARIANCE, "std = tl.sqrt(squares / (cols - 1))"),
                WEIGHT + EACH.format("(x - mean) / (std + 1e-5) * w"), "tl.store(a_ptr + row, mean)\ntl.store(d_ptr + row, std)",
            ),
            "y = torch.empty_like(x)\n"
            "mean = torch.empty((x.shape[0], 1), device=x.device, dtype=x.dtype)\nstd = torch.empty_like(mean)",
            'return {"output": y, "mean": mean, "std": std}',
        ),
    ),
    "level3/residual_block": (
        _group_norm(
            "norm_relu_add", "r + tl.maximum((x - mean) * scale * w + b, 0.0)", "z", "z = self.conv(x)\ny = torch.empty_like(x)",
            {"x": "z", "r": "x", "w": "self.weight", "b": "self.bias", "y": "y"},
            "r = tl.load(r_ptr + row * cols + c, mask=m)\n",
        ),
    ),
    "level3/squeeze_excite": (_squeeze_excite(),),
    "level3/norm_mlp": (_norm_mlp(),),
}  # fmt: skip
PLANS: dict[str, tuple[Plan, ...]] = {**_LEVEL1, **_LEVEL2, **_LEVEL3}
