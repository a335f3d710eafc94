"""Shows what the arms of an experiment are: the fields in which they differ, and the manifest of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LIST_LIMIT = 8
"""A longer list is shown by its length alone where arms are told apart."""
INNER_LIMIT = 30
"""A method inside another one is shown by its class alone where its text has more characters than this."""


def differences(configurations: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """What differs between arms: arm -> field -> value, for the fields of the dumped `Run` that are not the same in all arms. Of
    a value that differs in some of its own fields from others of its class, only these are shown."""
    fields = [key for key in next(iter(configurations.values())) if key not in ("name", "seed", "class")]
    values = {arm: {key: json.dumps(run[key], sort_keys=True) for key in fields} for arm, run in configurations.items()}
    varying = [key for key in fields if len({own[key] for own in values.values()}) > 1]
    shown = {key: _narrowed({arm: run[key] for arm, run in configurations.items()}) for key in varying}
    return {arm: {key: _plain(shown[key][arm]) for key in varying} for arm in configurations}


def _narrowed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The dumped values of one field by arm, each without the fields that all values of its class share, where these differ.

    >>> _narrowed({"a": {"class": "Loss", "kind": "clip", "beta": 0.0}, "b": {"class": "Loss", "kind": "cispo", "beta": 0.0}})
    {'a': {'class': 'Loss', 'kind': 'clip'}, 'b': {'class': 'Loss', 'kind': 'cispo'}}
    """
    found = dict(values)
    for arm, value in values.items():
        if not isinstance(value, Mapping) or "class" not in value:
            continue
        alike = [other for other in values.values() if isinstance(other, Mapping) and other.get("class") == value["class"]]
        if differing := {key for key in value if any(other.get(key) != value[key] for other in alike)}:
            found[arm] = {key: item for key, item in value.items() if key == "class" or key in differing}
    return found


def _plain(value: Any) -> str:
    """A dumped value as text.

    >>> _plain({"class": "GRPO", "std": True, "eps": 1e-06})
    'GRPO(std=True, eps=1e-06)'
    """
    if isinstance(value, Mapping) and "class" in value:
        return f"{value['class']}({', '.join(f'{k}={_inner(v)}' for k, v in value.items() if k != 'class')})"
    if isinstance(value, list):
        # The manifest has all of them.
        return f"[{', '.join(_plain(item) for item in value)}]" if len(value) <= LIST_LIMIT else f"[{len(value)} values]"
    return str(value)


def _inner(value: Any) -> str:
    """A value inside another one as text; where that is long, its class alone. The manifest has all of it."""
    text = _plain(value)
    return value["class"] if isinstance(value, Mapping) and "class" in value and len(text) > INNER_LIMIT else text


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """A manifest as JSON, with the number of problems instead of their names."""
    run = manifest["run"]
    short = {key: f"{len(value)} problems" if key == "problems" else value for key, value in run.items()}
    return json.dumps({**manifest, "run": short}, indent=1)
