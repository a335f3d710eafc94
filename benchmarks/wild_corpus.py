"""Kernels that other people's models wrote, collected from clones of public repositories. Nothing of them is ever committed.

    python -m benchmarks.wild_corpus --out CORPUS CLONE [CLONE ...] [--most 100] [--without CORPUS/manifest.jsonl]
    python -m benchmarks.wild_corpus --out CORPUS CLONE --themselves    # KernelBench's references against themselves

`benchmarks.wild_layouts` says where a clone may keep them. CORPUS receives `manifest.jsonl`, as `rlkernel evaluate --manifest`
reads it. Only candidates with a Triton kernel are taken, each text once, and of each folder of a clone at most `--most`, evenly
spread.

A candidate that is a function gets a `ModelNew` whose forward calls it with the forward's arguments; where the function wants
more than those it is left out, and counted. A reference may call its module anything and may lack `get_init_inputs`.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.wild_layouts import Pair, pairs_of
from rlkernel.sources.directory import lacking
from rlkernel.sources.renaming import as_model

FUNCTIONS = ("kernel_function", "triton_kernel_wrapper")
"""What the functions are called that public prompts ask for instead of a module."""
MODULE = """

class ModelNew(torch.nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, *args):
        return {function}(*args)
"""


def main() -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clones", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--most", type=int, default=100, help="candidates of one folder of a clone")
    parser.add_argument("--without", type=Path, help="a manifest whose candidates are left out")
    parser.add_argument("--themselves", action="store_true", help="KernelBench's references as their own candidates")
    given = parser.parse_args()
    if given.themselves:
        rows = [row for clone in given.clones for row in themselves(clone, given.out)]
        write_manifest(given.out, rows)
        print(f"{len(rows):5} references in {given.out}")
        return
    seen = {_digest(*texts) for texts in _written(given.without)} if given.without else set()
    rows, left_out = collect(given.clones, given.out, given.most, seen)
    write_manifest(given.out, rows)
    for source, count in Counter("/".join(row["id"].split("/")[:2]) for row in rows).items():
        print(f"{count:5} {source}")
    print(f"{len(rows):5} candidates in {given.out}; left out: {dict(left_out)}")


def collect(clones: Sequence[Path], out: Path, most: int, seen: set[str]) -> tuple[list[dict[str, str]], Counter[str]]:
    """Write the candidates of `clones` to `out`, without those whose digests are `seen`.

    Returns the manifest's rows, and how many were left out for which cause."""
    left_out: Counter[str] = Counter()
    rows = []
    for clone in clones:
        folders: dict[str, list[Pair]] = {}
        for pair in pairs_of(clone):
            made, cause = _usable(pair)
            if made is None or (digest := _digest(made.reference, made.candidate)) in seen:
                left_out[cause or "the same text again"] += 1
                continue
            seen.add(digest)
            folders.setdefault(pair.id.rpartition("/")[0], []).append(made)
        for pairs in folders.values():
            step = max(len(pairs) / most, 1.0)
            taken = [pairs[int(place * step)] for place in range(min(most, len(pairs)))]
            if len(taken) < len(pairs):
                left_out["more of one folder"] += len(pairs) - len(taken)
            rows += [write_pair(out, f"{clone.name}/{pair.id}", pair.reference, pair.candidate) for pair in taken]
    return rows, left_out


def themselves(clone: Path, out: Path) -> Iterator[dict[str, str]]:
    """KernelBench's references of levels 1 to 3, each as the candidate of itself: all of them are `no_kernel`."""
    for path in sorted(clone.glob("KernelBench/level[123]/*.py")):
        text = path.read_text()
        yield write_pair(out, f"{path.parent.name}/{path.stem}", text, text + "\n\nModelNew = Model\n")


def _usable(pair: Pair) -> tuple[Pair | None, str]:
    """The pair as `rlkernel evaluate` takes it, or None and the cause."""
    if "triton.jit" not in pair.candidate:
        return None, "no Triton kernel"
    reference = _as_reference(pair.reference)
    if reference is None:
        return None, "no reference"
    candidate = _as_module(pair)
    if candidate is None:
        return None, "a function that wants more than the forward's arguments"
    return Pair(pair.id, reference, candidate), ""


def _as_reference(source: str) -> str | None:
    """A reference in KernelBench's format, of a file whose last module may have any name; None where there is none."""
    try:
        classes = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
        found = as_model(source, "Model" if "Model" in classes else classes[-1])
    except (SyntaxError, ValueError, IndexError):
        return None
    if "def get_init_inputs" not in found:
        found += "\n\ndef get_init_inputs():\n    return []\n"
    return found if lacking(found) is None else None


def _as_module(pair: Pair) -> str | None:
    """The candidate with a `ModelNew`; None where no module can be made of its function."""
    if "class ModelNew" in pair.candidate:
        return pair.candidate
    try:
        candidate, reference = ast.parse(pair.candidate), ast.parse(pair.reference)
    except SyntaxError:
        return None
    functions = [node for node in candidate.body if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS]
    forwards = [
        node
        for model in reference.body
        if isinstance(model, ast.ClassDef)
        for node in model.body
        if isinstance(node, ast.FunctionDef) and node.name == "forward"
    ]
    if not functions and any(isinstance(node, ast.ClassDef) and node.name == "Model" for node in candidate.body):
        return pair.candidate + "\n\nModelNew = Model\n"
    if not functions or len(forwards) != 1:
        return None
    wanted, given = functions[-1].args, forwards[0].args
    required = len(wanted.args) - len(wanted.defaults)
    if not required <= len(given.args) - 1 <= len(wanted.args):
        return None
    return pair.candidate + MODULE.format(function=functions[-1].name)


def _digest(reference: str, candidate: str) -> str:
    return hashlib.sha256(f"{reference}\0{candidate}".encode()).hexdigest()


def _written(manifest: Path) -> Iterator[tuple[str, str]]:
    """The texts of a corpus that was built before."""
    for line in manifest.read_text().splitlines():
        row = json.loads(line)
        yield (manifest.parent / row["reference"]).read_text(), (manifest.parent / row["candidate"]).read_text()


def write_pair(out: Path, name: str, reference: str, candidate: str) -> dict[str, str]:
    """Write a pair into a corpus, each reference once. Returns its row of the manifest."""
    digest = hashlib.sha256(reference.encode()).hexdigest()[:12]
    paths = (out / "references" / f"{digest}.py", out / "candidates" / f"{name}.py")
    for path, text in zip(paths, (reference, candidate), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {"id": name, "reference": str(paths[0].relative_to(out)), "candidate": str(paths[1].relative_to(out))}


def write_manifest(out: Path, rows: Iterable[dict[str, str]]) -> None:
    """Write what `rlkernel evaluate --manifest` reads."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
