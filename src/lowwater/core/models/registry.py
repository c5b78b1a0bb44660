"""The model registry: finds a model by name in any spelling, and states what had to be assumed."""

from collections.abc import Callable, Iterable
from math import log
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.models.model import (
    CacheRules,
    FallbackChain,
    Listing,
    Model,
    ModelFamily,
    Prices,
    SteppedPrefixes,
)
from lowwater.core.models.names import (
    RESELLERS,
    ModelSpelling,
    is_boundary,
    is_suffix,
    one_spelling,
    read_name,
)

CONTEXT_OF_UNKNOWN = 128_000
CONTEXT_OF_MEMBER = 200_000
"""The context length assumed of an unlisted member of a family, unless a listed one has less."""
_CHORE_SHARE = 5
"""A model for chores costs about this fraction (one part in so many) of the one that does the work."""
NO_PRICE = "no price known: no dollar figure"

PriceList = Callable[[ModelSpelling, ModelFamily | None], Listing | None]
"""Looks a name up in a price list; the family, if there is one, identifies the maker."""

MatchQuality = Literal["listed", "resold", "priced", "family", "unknown"]


class ModelMatch(Struct, frozen=True, kw_only=True):
    """A name, the model found for it, and how it was found.

    It is `listed` by name, `resold` by a host that is not the maker, `priced` by the price list only, a member of a
    known `family`, or `unknown`.
    """

    spelling: ModelSpelling
    how: MatchQuality
    model: Model
    suffix: str = ""
    """What follows the name without changing the model: a date, a revision."""


class Registry:
    """The known models, and a model with stated assumptions for any other name."""

    def __init__(
        self,
        models: Iterable[Model],
        families: Iterable[ModelFamily] = (),
        *,
        price_list: PriceList | None = None,
    ) -> None:
        self.models = tuple(models)
        self.families = tuple(families)
        self._price_list = price_list
        self._by_name = {
            one_spelling(name): model for model in self.models for name in (model.name, *model.aliases)
        }
        self._by_prefix = {
            one_spelling(prefix): family for family in self.families for prefix in family.prefixes
        }
        self._longest = max(map(len, (*self._by_name, *self._by_prefix)), default=0)

    def find(self, name: str) -> Model:
        """Return the model called `name`; an unknown one has its assumptions stated and no prices."""
        return self.match(name).model

    def cheaper(self, model: Model) -> Model | None:
        """Return the same provider's model for chores such as summaries: the one nearest to a fifth of the price of `model`.

        None if there is no cheaper one, or the price of `model` is unknown.
        """
        if model.prices is None:
            return None
        wanted = model.prices.input / _CHORE_SHARE
        prices = {
            other: other.prices.input
            for other in self.models
            if other.provider == model.provider and other.prices and other.prices.input < model.prices.input
        }
        return min(prices, key=lambda other: abs(log(prices[other] / wanted)), default=None)

    def match(self, name: str) -> ModelMatch:
        """Return the model called `name` and how it was found."""
        spelling = read_name(name)
        return self._listed(spelling) or self._resold(spelling) or self._unlisted(spelling)

    def chain(self, primary: str, fallbacks: Iterable[str] = ()) -> FallbackChain:
        """Return the models of a primary and its fallbacks, in the order they are tried."""
        return FallbackChain(models=tuple(self.find(name) for name in (primary, *fallbacks)))

    def _listed(self, spelling: ModelSpelling) -> ModelMatch | None:
        name = spelling.full
        for end in range(min(len(name), self._longest), 0, -1):
            model = self._by_name.get(name[:end])
            if model is not None and is_suffix(name[end:]):
                return ModelMatch(spelling=spelling, how="listed", model=model, suffix=name[end:])
        return None

    def _resold(self, spelling: ModelSpelling) -> ModelMatch | None:
        """Return the maker's facts for a host that resells its service, with the host's prices if they differ."""
        by_maker = self._listed(replace(spelling, host="")) if spelling.host in RESELLERS else None
        if by_maker is None:
            return None
        maker, seller = by_maker.model, spelling.host.removesuffix("-regional")
        listing = self._listing(spelling, None)
        if listing is None or listing.prices is None:
            assumption = f"prices and cache rules assumed as with {maker.provider}: {seller} may differ"
            model = replace(maker, provider=seller, assumptions=(assumption,))
        elif maker.prices and _same_prices(listing.prices, maker.prices):
            assumption = f"cache rules assumed as with {maker.provider}: {seller} may differ"
            model = replace(
                maker, provider=seller, sources=(*maker.sources, listing.source), assumptions=(assumption,)
            )
        else:
            assumption = (
                f"prices through {seller} from {listing.source}; all else assumed as with {maker.provider}"
            )
            model = replace(
                maker,
                provider=seller,
                prices=listing.prices,
                cliffs=listing.cliffs,
                sources=(*maker.sources, listing.source),
                assumptions=(assumption, *listing.assumptions),
            )
        return ModelMatch(spelling=spelling, how="resold", model=model, suffix=by_maker.suffix)

    def _unlisted(self, spelling: ModelSpelling) -> ModelMatch:
        family = self._family(spelling)
        listing = self._listing(spelling, family)
        how: MatchQuality = "priced" if listing else "family" if family else "unknown"
        return ModelMatch(spelling=spelling, how=how, model=self._assumed(spelling, family, listing))

    def _assumed(self, spelling: ModelSpelling, family: ModelFamily | None, listing: Listing | None) -> Model:
        """Return a model made from its family and a price list; the rest is stated as assumptions."""
        assumptions: list[str] = []
        if listing is not None:
            assumptions += [f"taken from {listing.source}, not checked by Lowwater", *listing.assumptions]
        context_length = listing.context_length if listing else None
        if context_length is None:
            context_length = self._context_of(family)
            assumptions.append(f"context length {context_length:,} assumed")
        if family is None:
            assumptions.append("prompt cache assumed to be automatic, its lifetime unknown")
        else:
            assumptions.append(f"cache rules assumed as in the {family.name} family")
        if family is not None and family.binds_thinking:
            assumptions.append("thinking assumed to be bound to its prefix")
        if listing is None or listing.prices is None:
            assumptions.append(NO_PRICE)
        return Model(
            name=spelling.full,
            provider=family.provider
            if family
            else spelling.host or (listing.provider if listing else "unknown"),
            family=family.name if family else "",
            context_length=context_length,
            cache=family.cache if family else CacheRules(matching=SteppedPrefixes()),
            prices=listing.prices if listing else None,
            cliffs=listing.cliffs if listing else (),
            max_bytes=family.max_bytes if family else None,
            binds_thinking=family.binds_thinking if family else False,
            notes=family.notes if family else "",
            sources=(*(family.sources if family else ()), *((listing.source,) if listing else ())),
            as_of=family.as_of if family else "",
            assumptions=tuple(assumptions),
        )

    def _context_of(self, family: ModelFamily | None) -> int:
        if family is None:
            return CONTEXT_OF_UNKNOWN
        listed = [model.context_length for model in self.models if model.family == family.name]
        return min(CONTEXT_OF_MEMBER, *listed) if listed else CONTEXT_OF_UNKNOWN

    def _family(self, spelling: ModelSpelling) -> ModelFamily | None:
        """Find the family by the longest prefix: for a reseller, first among its own families, then among the maker's."""
        for name in (spelling.full, spelling.name) if spelling.host in RESELLERS else (spelling.full,):
            for end in range(min(len(name), self._longest), 0, -1):
                family = self._by_prefix.get(name[:end])
                if family is not None and is_boundary(name, end):
                    return family
        return None

    def _listing(self, spelling: ModelSpelling, family: ModelFamily | None) -> Listing | None:
        return self._price_list(spelling, family) if self._price_list else None


def _same_prices(listed: Prices, known: Prices) -> bool:
    """Return whether a price list agrees with the known prices; prices of cache writes, which lists often lack, are ignored."""
    return (listed.input, listed.cache_read, listed.output) == (known.input, known.cache_read, known.output)


def canonical_model_name(name: str, registry: Registry) -> str:
    """Return the name of the listed model that `name` refers to, or else `name` without its host, dates and revisions."""
    found = registry.match(name)
    if found.how in ("listed", "resold"):
        return found.model.name.rpartition("/")[2]
    own = found.spelling.name
    end = next((end for end in range(1, len(own)) if is_suffix(own[end:])), len(own))
    return own[:end]
