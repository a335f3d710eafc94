"""Other values for attributes of modules and classes, for a while.

A trace changes a hundred of them, twice. `unittest.mock` takes milliseconds for that, which is a tenth of a short trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def patched(owner: Any, *, create: bool = False, **values: Any) -> Iterator[None]:
    """Inside, attributes of a module or class have these values. Raises AttributeError for one that it does not have, unless
    `create`."""
    own = vars(owner)
    before = {name: own[name] for name in values if name in own}
    for name in () if create else values:
        getattr(owner, name)
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name in values:
            if name in before:
                setattr(owner, name, before[name])
            elif name in vars(owner):  # it was inherited, or created
                delattr(owner, name)
