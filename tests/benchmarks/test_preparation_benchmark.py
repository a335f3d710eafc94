from __future__ import annotations

import json
from pathlib import Path

from benchmarks.preparation import rows
from rlkernel.sources.load import load


def test_made_rows_are_problems_of_the_published_columns_small_and_large(tmp_path: Path) -> None:
    made = rows(20, seed=1)
    path = tmp_path / "made.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    loaded = load(str(path))
    assert (len(loaded.problems), loaded.left_out) == (20, ())
    assert len({problem.source for problem in loaded.problems}) == 20
    large = [problem for problem in loaded.problems if "ROWS = " in problem.source]
    assert len(large) == 6 and not any("SMALL" in problem.source for problem in large)
    assert rows(20, seed=1) == made != rows(20, seed=2)
