"""Solutions of LeetGPU's challenges as a corpus: kernels that write into memory that the caller brings.

    python -m benchmarks.wild_challenges --out CORPUS CHALLENGES [CLONE ...]

CHALLENGES is a clone with `challenges/*/NUMBER_NAME/challenge.py`. A challenge holds a reference and the inputs of its
performance test; of it a file in KernelBench's format is written, whose forward returns the arguments that it writes. A solution
is a file of any clone, CHALLENGES among them, that defines `solve` and a Triton kernel. It belongs to the challenge whose name is
most like the file's or a folder's, and whose arguments are most like its own. CORPUS receives `manifest.jsonl`, as in
`benchmarks.wild_corpus`.

Memory that a challenge leaves empty is zeros here: solutions add into it, and nobody says what it holds.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.wild_corpus import write_manifest, write_pair

ALIKE = 0.6
"""The least similarity of names."""
SURE = 0.85
"""The similarity of names from which on those of arguments do not matter."""
FILLED = ("uniform_", "normal_", "random_", "fill_", "bernoulli_", "exponential_")
"""Methods that give memory its numbers."""
BASE = """
class ChallengeBase:
    def __init__(self, device="cpu"):
        self.device = device


class _Spec:
    def __init__(self, shape, *args, **kwargs):
        self.shape, self.args, self.kwargs = tuple(shape), args, kwargs

    def made(self):
        return self.make(*self.args, **self.kwargs)


class RandTensor(_Spec):
    def make(self, low=0.0, high=1.0, dtype="float32"):
        return torch.empty(self.shape).uniform_(low, high).to(getattr(torch, dtype))


class RandnTensor(_Spec):
    def make(self, mean=0.0, std=1.0, dtype="float32"):
        return (torch.randn(self.shape) * std + mean).to(getattr(torch, dtype))


class RandIntTensor(_Spec):
    def make(self, low, high, dtype="int32"):
        return torch.randint(low, high, self.shape).to(getattr(torch, dtype))


class FullTensor(_Spec):
    def make(self, value=0.0, dtype="float32"):
        return torch.full(self.shape, value, dtype=getattr(torch, dtype))


class OutTensor(_Spec):
    def make(self, dtype="float32"):
        return torch.zeros(self.shape, dtype=getattr(torch, dtype))

"""
"""What challenges import."""
REFERENCE = """

class Model(torch.nn.Module):
    def forward(self, {args}):
        Challenge().reference_impl({args})
        return {outs}


def get_inputs():
{body}
    made = made[0] if isinstance(made, list) else made
    made = [made[name] for name in {names!r}]
    return [value.made() if isinstance(value, _Spec) else value for value in made]


def get_init_inputs():
    return []
"""
CANDIDATE = """

import torch


class ModelNew(torch.nn.Module):
    def forward(self, {args}):
        solve({args})
        return {outs}
"""


@dataclass(frozen=True, slots=True)
class Challenge:
    """A task, and what a solution's `ModelNew` needs of it."""

    name: str
    """The folder's name without its number."""
    reference: str
    args: tuple[str, ...]
    outs: tuple[str, ...]

    def candidate(self, solution: str) -> str:
        """A solution with a `ModelNew`."""
        return solution + CANDIDATE.format(args=", ".join(self.args), outs=", ".join(self.outs))


class _OnTheHost(ast.NodeTransformer):
    """A challenge that needs no GPU and none of its own package, and whose memory is never left as it is found."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        return None if node.module and node.module.startswith("core") else node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.Pass() if "device" in ast.unparse(node) or "cuda" in ast.unparse(node) else node

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("cpu") if node.value == "cuda" else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if ast.unparse(node) == "self.device":
            return ast.Constant("cpu")
        inner = isinstance(node.value, ast.Call) and node.attr in FILLED
        self.generic_visit(node.value if inner else node)  # the call that makes memory stays, and its arguments change
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        if ast.unparse(node.func) == "torch.empty":
            node.func = ast.Attribute(ast.Name("torch", ast.Load()), "zeros", ast.Load())
        self.generic_visit(node)
        return node


class _Inlined(ast.NodeTransformer):
    """The body of a method that returns a test, as lines that assign it: sizes are looked for in `get_inputs` alone."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Call(ast.Name("Challenge", ast.Load()), [], []) if node.id == "self" else node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        self.generic_visit(node)
        return ast.Assign([ast.Name("made", ast.Store())], node.value or ast.Constant(None))


def challenge_of(name: str, text: str) -> Challenge | None:
    """The challenge of a file; None where it says nothing of its arguments."""
    tree = _OnTheHost().visit(ast.parse(text))
    methods = {
        node.name: node
        for made in tree.body
        if isinstance(made, ast.ClassDef) and made.name == "Challenge"
        for node in made.body
        if isinstance(node, ast.FunctionDef)
    }
    signature, test = methods.get("get_solve_signature"), methods.get("generate_performance_test")
    found = next((n.value for n in ast.walk(signature) if isinstance(n, ast.Return)), None) if signature else None
    if test is None or not isinstance(found, ast.Dict):
        return None
    ways = {
        str(key.value): str(way.elts[-1].value)
        for key, way in zip(found.keys, found.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(way, ast.Tuple) and isinstance(way.elts[-1], ast.Constant)
    }
    outs = tuple(key for key, way in ways.items() if way in ("out", "inout"))
    if set(ways) != {argument.arg for argument in methods["reference_impl"].args.args[1:]} or not outs:
        return None
    whole = ast.unparse(ast.fix_missing_locations(tree))
    lines = [ast.unparse(ast.fix_missing_locations(_Inlined().visit(statement))) for statement in test.body]
    body = "\n".join("    " + line for part in lines for line in part.splitlines())
    end = REFERENCE.format(args=", ".join(ways), outs=", ".join(outs), body=body, names=list(ways))
    return Challenge(re.sub(r"^\d+_", "", name), "import torch\n" + BASE + whole + end, tuple(ways), outs)


def solutions_of(clone: Path) -> Iterator[tuple[list[str], str]]:
    """The names that a solution could be known by, and its text."""
    for path in sorted(clone.rglob("*.py")):
        text = path.read_text(errors="replace")
        begun = "starter" in path.parts  # files for people to begin with
        if not begun and "triton.jit" in text and re.search(r"^def solve\(", text, re.MULTILINE):
            yield [_plain(part) for part in path.relative_to(clone).with_suffix("").parts[-3:]], text


def _plain(name: str) -> str:
    name = re.sub(r"^(?:leetgpu_|easy-|medium-|hard-|\d+_)", "", name.lower().removesuffix(".triton"))
    return re.sub(r"[^a-z0-9]", "", name)


def meant(names: Sequence[str], solution: str, challenges: Sequence[Challenge]) -> Challenge | None:
    """The challenge that a solution solves; None where none is like it."""
    try:
        functions = [node for node in ast.parse(solution).body if isinstance(node, ast.FunctionDef) and node.name == "solve"]
    except SyntaxError:
        return None
    given = [argument.arg for argument in functions[-1].args.args] if functions else []
    best, found = 0.0, None
    for challenge in challenges:
        if len(challenge.args) != len(given):
            continue
        own, theirs = ({_plain(name) for name in several} for several in (challenge.args, given))
        named = max(difflib.SequenceMatcher(None, _plain(challenge.name), name).ratio() for name in names)
        shared = len(own & theirs) / len(own | theirs)
        if named >= ALIKE and (named >= SURE or shared >= ALIKE) and named + shared > best:
            best, found = named + shared, challenge
    return found


def main() -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("challenges", type=Path)
    parser.add_argument("clones", nargs="*", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    given = parser.parse_args()
    made = [
        challenge_of(path.parent.name, path.read_text()) for path in sorted(given.challenges.glob("challenges/*/*/challenge.py"))
    ]
    challenges = [challenge for challenge in made if challenge is not None]
    rows: dict[str, dict[str, str]] = {}
    for clone in (given.challenges, *given.clones):
        for names, text in solutions_of(clone):
            challenge = meant(names, text, challenges)
            if challenge is None:
                continue
            name = f"{clone.name}/{challenge.name}"
            name = f"{name}-{sum(known.startswith(name) for known in rows)}" if name in rows else name
            rows[name] = write_pair(given.out, name, challenge.reference, challenge.candidate(text))
    write_manifest(given.out, rows.values())
    print(f"{len(rows)} solutions of {len(challenges)} challenges in {given.out}")


if __name__ == "__main__":
    main()
