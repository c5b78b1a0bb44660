"""The prompt caches of the providers, one file per way to match a prefix.

They are written from the published rules alone, on purpose apart from the cost engine: their use is to check it. A
prefix is shared up to the end of the last equal piece; what two different pieces have in common does not count.
"""

from lowwater.testing.provider.caches.cache import Cache, Used
from lowwater.testing.provider.caches.choice import CACHINGS, Caching, caching_of
from lowwater.testing.provider.caches.machines import Machines

__all__ = ["CACHINGS", "Cache", "Caching", "Machines", "Used", "caching_of"]
