"""The network between replicas: messages that are late, lost or doubled, and links that are cut one way."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.simulation.profile import Profile
from tests.simulation.world import World


class Network:
    """Carries messages as the profile of the seed has it; `cut` are the (from, to) that carry nothing."""

    def __init__(self, world: World, profile: Profile) -> None:
        self._world = world
        self.profile = profile
        self.cut: set[tuple[int, int]] = set()

    def carry(self, source: int, target: int, deliver: Callable[[], None]) -> None:
        """Deliver a message some time, or never, or twice."""
        world, profile = self._world, self.profile
        if (source, target) in self.cut or world.happens(profile.drop):
            return
        world.at(self._delay_ms(), deliver)
        if world.happens(profile.duplicate):
            world.at(self._delay_ms(), deliver)

    def _delay_ms(self) -> int:
        delay_ms = self._world.random.randint(0, self.profile.delay_ms)
        return delay_ms * 20 if self._world.happens(self.profile.very_late) else delay_ms

    def partition(self, nodes: Iterable[int]) -> None:
        """Cut the links between two random halves, both ways or only one."""
        chance = self._world.random
        side = {node for node in nodes if chance.random() < 0.5}
        others = set(nodes) - side
        self.cut = {(a, b) for a in side for b in others}
        if chance.random() < 0.7:
            self.cut |= {(b, a) for a, b in self.cut}

    def heal(self) -> None:
        """Join everything again, and be quick and reliable from now on."""
        self.cut = set()
        self.profile = self.profile.without_faults()
