"""Which id a tensor has: the tensors that a trace has seen, and what each id was a view of when it was given.

A tensor can become another one without any operator: by `.data =`, by `swap_tensors`, and by `Module.to`, which uses them. So an
id stands for what a tensor was then, and whoever asks for the id of what it is now may make a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from rlkernel.evaluator.program.schema import Op, Step
from rlkernel.evaluator.program.values import TensorRef, Value
from rlkernel.evaluator.trace.addresses import Addresses
from rlkernel.evaluator.trace.devices import META
from rlkernel.evaluator.trace.host_numbers import Untraceable
from rlkernel.evaluator.trace.looks import Look, look_of, look_unwatched


class Identities:
    """The ids of the tensors seen so far. `append` records a step: what view a tensor without an id is of one that has one."""

    def __init__(self, append: Callable[[Step], None]) -> None:
        self._append = append
        self.addresses = Addresses()
        self._places: dict[int, int] = {}
        """The memory of an input of any call -> the place of the input among its call's."""
        self._inputs: list[int] = []
        """The memory of the inputs of the call in progress."""
        self._ids: dict[int, int] = {}
        self._alive: list[tuple[torch.Tensor, Any]] = []
        """Tensors by id, and their storages, so that no address is given twice."""
        self._looks: list[Look] = []
        """What each id was a view of when it was given."""
        self._refs: list[TensorRef] = []
        """What a step says of each id."""
        self._homes: dict[tuple[int, torch.dtype], int] = {}
        """Storage and dtype -> the first id there, to reach tensors that were made behind the recorder's back."""

    def __len__(self) -> int:
        """Ids given so far."""
        return len(self._alive)

    def tensor(self, number: int) -> torch.Tensor:
        """The tensor with an id, as the trace has it: without data."""
        return self._alive[number][0]

    def unseen(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A tensor on the GPU that no step makes and no call is given: a kernel is compiled for it, and never launched."""
        with _disable_current_modes():
            tensor = torch.empty(shape, dtype=dtype, device=META)
        self.bind(tensor)
        return tensor

    def storage(self, number: int) -> int:
        """The identity of the memory that the tensor with an id had when it was given the id."""
        return self._looks[number][0]

    def bind(self, tensor: torch.Tensor) -> int:
        """Give `tensor` an id: an input, a literal or a result."""
        with torch._C.DisableTorchFunction():
            return self._bind(tensor, look_unwatched(tensor))

    def _bind(self, tensor: torch.Tensor, look: Look) -> int:
        number = len(self._alive)
        self._alive.append((tensor, tensor.untyped_storage()))
        self._ids[id(tensor)] = number
        self._looks.append(look)
        self._refs.append(TensorRef(number))
        self._homes.setdefault(look[:2], number)
        return number

    def of(self, tensor: torch.Tensor) -> int:
        """The id of what `tensor` is now, which may be another tensor than the one that it was. Raises Untraceable."""
        return self._of(tensor, look_of(tensor))

    def ref(self, tensor: torch.Tensor) -> TensorRef:
        """What a step says of a tensor. Raises Untraceable."""
        return self._refs[self.of(tensor)]

    def ref_as(self, tensor: torch.Tensor, look: Look) -> TensorRef:
        """What a step says of a tensor that looks so. Raises Untraceable."""
        return self._refs[self._of(tensor, look)]

    def _of(self, tensor: torch.Tensor, look: Look) -> int:
        number = self._ids.get(id(tensor))
        if number is not None and self._looks[number] == look:
            return number
        home = self._homes.get(look[:2])
        if home is None:
            raise Untraceable("a tensor was made in a way that the trace does not see")
        args: tuple[Value, ...] = (TensorRef(home), list(look[2]), list(look[3]), look[4])
        number = self.bind(tensor)
        self._append(Op("aten.as_strided.default", args, {}, (number,)))
        return number

    def begin(self, inputs: Sequence[int]) -> None:
        """A call of forward begins, with inputs that have these ids. They lie where those of the last call have lain."""
        storages = list(dict.fromkeys(self.storage(number) for number in inputs))
        with torch._C.DisableTorchFunction():
            sizes = {self.storage(number): self.tensor(number).untyped_storage().nbytes() for number in inputs}
        self.addresses.inputs(storages, [sizes[storage] for storage in storages])
        self._places |= {storage: place for place, storage in enumerate(storages)}
        self._inputs = storages

    def move_inputs(self) -> None:
        """The inputs of all later calls lie where none has lain before."""
        self.addresses.move()
        self._places.clear()

    def now(self, number: int) -> int:
        """The id of what lies now where the tensor with this id has lain: another one where a CUDA graph has been replayed since,
        and in the memory of an input."""
        storage, dtype, *shape = look = self._looks[number]
        place = self._places.get(storage)
        if place is not None and self._inputs[place] != storage:
            home = self._homes.get((self._inputs[place], dtype))
            if home is None:
                raise Untraceable("a CUDA graph that was captured in an earlier call reads its input as another dtype")
            if self._looks[home][1:] == look[1:]:
                return home
            args: tuple[Value, ...] = (TensorRef(home), *(list(s) if isinstance(s, tuple) else s for s in shape))
            with torch._C.DisableTorchFunction(), _disable_current_modes():
                found = self.bind(torch.as_strided(self.tensor(home), *shape))  # type: ignore[arg-type]
            self._append(Op("aten.as_strided.default", args, {}, (found,)))
            return found
        now = self._ids.get(id(self.tensor(number)))
        return number if now is None or self._looks[now] != look else now

    def forget(self, since: int) -> set[int]:
        """Take back the ids from `since` on, of tensors that nothing has computed. Returns the memory that was made there."""
        made = {look[0] for look in self._looks[since:]} - {look[0] for look in self._looks[:since]}
        for tensor, _ in self._alive[since:]:
            self._ids.pop(id(tensor), None)
        self.renew(made)
        return made

    def renew(self, storages: set[int]) -> None:
        """Take back the ids of all tensors in some memory, which is about to be written anew."""
        for number, look in enumerate(self._looks):
            if look[0] in storages:
                self._ids.pop(id(self.tensor(number)), None)
                self._homes.pop(look[:2], None)

    def of_result(self, tensor: torch.Tensor) -> int:
        """The id of what an operator returned: a new one, unless it returned its argument, changed in place (`t_`)."""
        known = self._ids.get(id(tensor))
        if known is None:
            return self._bind(tensor, look_unwatched(tensor))
        self._looks[known] = look_unwatched(tensor)
        return known
