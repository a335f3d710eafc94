"""Kinds that touch what a kernel reads and writes: masks, addresses, axes, and the bounds of its loops."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from benchmarks.mutants.kinds import called, keyword, kind, number, renamed, text, with_args, with_keyword, without

WIDER = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


@kind("load without mask")
def load_without_mask(node: ast.AST) -> Iterator[str]:
    """`tl.load(p, mask=m, other=0)` reads everything."""
    if (call := called(node, "load")) and keyword(call, "mask"):
        yield without(call, "mask", "other")


@kind("store without mask")
def store_without_mask(node: ast.AST) -> Iterator[str]:
    """`tl.store(p, v, mask=m)` writes everything, and so does an atomic operation."""
    if (call := called(node, "store", "atomic_add", "atomic_max")) and keyword(call, "mask"):
        yield without(call, "mask")


@kind("other changed")
def other_changed(node: ast.AST) -> Iterator[str]:
    """What stands for masked elements becomes 1, or 0 where it was none."""
    if (call := called(node, "load")) and (value := keyword(call, "other")):
        yield with_keyword(call, "other", "1.0" if number(value) == 0 else "0.0")


@kind("other left out")
def other_left_out(node: ast.AST) -> Iterator[str]:
    """What stands for masked elements is not said."""
    if (call := called(node, "load")) and keyword(call, "other"):
        yield without(call, "other")


@kind("bound by one")
def bound_by_one(node: ast.AST) -> Iterator[str]:
    """`<` becomes `<=`, and the reverse."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in WIDER:
        new = copy.copy(node)
        new.ops = [WIDER[type(node.ops[0])]()]
        yield text(new)


@kind("bound dropped")
def bound_dropped(node: ast.AST) -> Iterator[str]:
    """Of `a & b` only one is asked."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        yield text(node.left)
        yield text(node.right)


@kind("limit by one")
def limit_by_one(node: ast.AST) -> Iterator[str]:
    """`i < n` becomes `i < n - 1` and `i < n + 1`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in WIDER:
        for sign in "-+":
            new = copy.copy(node)
            new.comparators = [ast.parse(f"{text(node.comparators[0])} {sign} 1", mode="eval").body]
            yield text(new)


@kind("address by one")
def address_by_one(node: ast.AST) -> Iterator[str]:
    """A load or a store goes to the next element."""
    if (call := called(node, "load", "store")) and call.args and not isinstance(call.args[0], ast.Starred):
        yield with_args(call, [ast.parse(f"{text(call.args[0])} + 1", mode="eval").body, *call.args[1:]])


@kind("factor of an address dropped")
def factor_dropped(node: ast.AST) -> Iterator[str]:
    """`row * stride` becomes `row`, where the right side is a name."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Name):
        yield text(node.left)


@kind("program's axis")
def axis_of_program(node: ast.AST) -> Iterator[str]:
    """`tl.program_id(0)` becomes `tl.program_id(1)`, and the reverse."""
    if (call := called(node, "program_id", "num_programs")) and len(call.args) == 1 and number(call.args[0]) in (0, 1):
        yield with_args(call, [ast.Constant(1 - int(number(call.args[0]) or 0))])


@kind("axis of a reduction")
def axis_of_reduction(node: ast.AST) -> Iterator[str]:
    """`axis=0` becomes `axis=1`, and the reverse."""
    if isinstance(node, ast.Call) and (value := keyword(node, "axis")) and number(value) in (0, 1):
        yield with_keyword(node, "axis", str(1 - int(number(value) or 0)))


@kind("rows for columns")
def rows_for_columns(node: ast.AST) -> Iterator[str]:
    """`i[:, None]` becomes `i[None, :]`, and the reverse."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        new = copy.copy(node)
        new.slice = ast.Tuple(list(reversed(node.slice.elts)), ast.Load())
        yield text(new)


@kind("indices by one")
def indices_by_one(node: ast.AST) -> Iterator[str]:
    """`tl.arange(0, n)` begins at 1."""
    if called(node, "arange"):
        yield f"({text(node)} + 1)"


def _loop(node: ast.AST) -> tuple[str, str, str, str] | None:
    """Function, start, stop and step of a loop's range, as text; None for another node."""
    call = called(node, "range", "static_range")
    if call is None or call.keywords or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    args = [text(one) for one in call.args]
    start, stop, step = ("0", args[0], "1") if len(args) == 1 else (*args, "1") if len(args) == 2 else args
    return text(call.func), start, stop, step


@kind("first turn left out")
def first_turn(node: ast.AST) -> Iterator[str]:
    """A loop begins one step later."""
    if bounds := _loop(node):
        function, start, stop, step = bounds
        yield f"{function}({f'{start} + {step}' if start != '0' else step}, {stop}, {step})"


@kind("last turn left out")
def last_turn(node: ast.AST) -> Iterator[str]:
    """A loop ends one step earlier."""
    if bounds := _loop(node):
        function, start, stop, step = bounds
        yield f"{function}({start}, {stop} - {step}, {step})"


@kind("one turn more")
def one_turn_more(node: ast.AST) -> Iterator[str]:
    """A loop ends one step later."""
    if bounds := _loop(node):
        function, start, stop, step = bounds
        yield f"{function}({start}, {stop} + {step}, {step})"


@kind("rounded down")
def rounded_down(node: ast.AST) -> Iterator[str]:
    """`tl.cdiv(a, b)` becomes `a // b`."""
    if (call := called(node, "cdiv")) and len(call.args) == 2:
        yield f"({text(call.args[0])} // {text(call.args[1])})"


@kind("quotient for rest")
def quotient_for_rest(node: ast.AST) -> Iterator[str]:
    """`//` becomes `%`, and the reverse."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
        new = copy.copy(node)
        new.op = ast.Mod() if isinstance(node.op, ast.FloorDiv) else ast.FloorDiv()
        yield text(new)


@kind("strides swapped")
def strides_swapped(node: ast.AST) -> Iterator[str]:
    """In an address, `a * s + b * t` becomes `a * t + b * s`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return
    one, other = node.left, node.right
    one = one.right if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add) else one
    products = [part for part in (one, other) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult)]
    if len(products) == 2 and ast.dump(products[0].right) != ast.dump(products[1].right):
        new = copy.deepcopy(node)
        left = new.left.right if one is not node.left and isinstance(new.left, ast.BinOp) else new.left
        assert isinstance(left, ast.BinOp) and isinstance(new.right, ast.BinOp)
        left.right, new.right.right = new.right.right, left.right
        yield text(new)


@kind("atomic for plain")
def atomic_for_plain(node: ast.AST) -> Iterator[str]:
    """`tl.atomic_add(p, v)` becomes `tl.store(p, v)`, and the reverse."""
    if call := called(node, "atomic_add"):
        new = copy.copy(call)
        new.keywords = [one for one in call.keywords if one.arg == "mask"]
        yield renamed(new, "store")
    elif call := called(node, "store"):
        yield renamed(call, "atomic_add")


@kind("barrier dropped")
def barrier_dropped(node: ast.AST) -> Iterator[str]:
    """Threads do not wait for each other."""
    if isinstance(node, ast.Expr) and called(node.value, "debug_barrier"):
        yield "pass"


@kind("one program stores nothing")
def one_program_idle(node: ast.AST) -> Iterator[str]:
    """The store of the last program is left out."""
    if isinstance(node, ast.Expr) and called(node.value, "store"):
        yield f"if tl.program_id(0) != tl.num_programs(0) - 1: {ast.unparse(node)}"
