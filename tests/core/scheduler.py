"""A small scheduler that works block by block: vLLM's rules, and nothing of `app.core.preemption`.

A fixed number of places is always in flight; a finished request makes room for a new one at once.
Every step computes the whole prompt of a new request, else one token. Each group of layers has a
block table; what a window has left wholly behind is freed before new blocks are taken. Blocks of
a prefix that all have in common are taken once and belong to nobody.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from app.core.kv_spec import KvSpec

Draw = Callable[[random.Random], tuple[int, int]]


@dataclass
class Pool:
    """Numbered blocks; new ones are made as they are needed, so that demand can be watched."""

    free: list[int] = field(default_factory=list)
    made: int = 0

    def take(self) -> int:
        """Take a free block."""
        if self.free:
            return self.free.pop()
        self.made += 1
        return self.made

    @property
    def used(self) -> int:
        """Blocks in use."""
        return self.made - len(self.free)


class Running:
    """One request: tokens computed so far and a block table for each group."""

    def __init__(self, prompt: int, answer: int, groups: Sequence[KvSpec], shared: int) -> None:
        """Begin before the first step; `shared` tokens at the front are already in the cache."""
        self.prompt, self.steps_left, self.computed = prompt, answer, 0
        self.groups = groups
        self.tables: list[dict[int, int | None]] = [{} for _ in groups]
        for table, spec in zip(self.tables, groups, strict=True):
            if spec.kind in {"full_attention", "mla"}:
                table.update(dict.fromkeys(range(min(shared, prompt) // spec.block_size)))

    def step(self, pool: Pool) -> None:
        """Free what no window needs any more, take blocks for the tokens of this step."""
        now = self.prompt if not self.computed else self.computed + 1
        for spec, table in zip(self.groups, self.tables, strict=True):
            if spec.kind == "mamba":
                wanted = range(spec.state_blocks)
            else:
                first = self._first_needed(spec, now) // spec.block_size
                for index in [index for index in table if index < first]:
                    self._give_back(table.pop(index), pool)
                wanted = range(first, -(-now // spec.block_size))
            for index in wanted:
                if index not in table:
                    table[index] = pool.take()
        self.computed = now
        self.steps_left -= 1

    def finish(self, pool: Pool) -> None:
        """Give everything back."""
        for table in self.tables:
            for block in table.values():
                self._give_back(block, pool)

    @staticmethod
    def _first_needed(spec: KvSpec, now: int) -> int:
        """Oldest token that the layers still look at when token number `now` is computed."""
        before = now - 1
        if spec.kind == "sliding_window":
            return max(0, before - (spec.window or 1) + 1)
        if spec.kind == "chunked_local":
            return before // (spec.window or 1) * (spec.window or 1)
        return 0

    @staticmethod
    def _give_back(block: int | None, pool: Pool) -> None:
        if block is not None:
            pool.free.append(block)


def blocks_in_use(
    groups: Sequence[KvSpec], places: int, steps: int, draw: Draw, *, shared: int = 0, seed: int = 0
) -> Iterator[int]:
    """Yield the blocks that all requests hold in each step, after a time to settle in."""
    chance, pool = random.Random(seed), Pool()  # noqa: S311 - a simulation
    running = [Running(*draw(chance), groups, shared) for _ in range(places)]
    for each in running:  # do not begin all at once
        each.steps_left = chance.randint(1, each.steps_left)
    common = sum(
        shared // spec.block_size for spec in groups if spec.kind in {"full_attention", "mla"}
    )
    for step in range(steps + steps // 10):
        for place, each in enumerate(running):
            if not each.steps_left:
                each.finish(pool)
                running[place] = each = Running(*draw(chance), groups, shared)  # noqa: PLW2901
            each.step(pool)
        if step >= steps // 10:
            yield pool.used + common
