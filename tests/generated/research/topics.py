"""What can be researched: subjects with their terms, measures and institutions."""

from msgspec import Struct


class Measure(Struct, frozen=True, kw_only=True):
    """Something that is reported in numbers."""

    name: str
    unit: str
    low: float
    high: float


class Topic(Struct, frozen=True, kw_only=True):
    """A subject and the words people use about it."""

    name: str
    terms: tuple[str, ...]
    institutions: tuple[str, ...]
    measures: tuple[Measure, ...]


def _topic(name: str, terms: str, institutions: str, *measures: tuple[str, str, float, float]) -> Topic:
    return Topic(
        name=name,
        terms=tuple(terms.split("|")),
        institutions=tuple(institutions.split("|")),
        measures=tuple(Measure(name=m, unit=u, low=low, high=high) for m, u, low, high in measures),
    )


TOPICS = (
    _topic(
        "grid-scale battery storage",
        "lithium iron phosphate cells|frequency response|four-hour systems|grid connection queues|curtailment|degradation|"
        "thermal runaway|capacity auctions|sodium-ion cells|round-trip efficiency|black start|merchant revenue|inverters",
        "Halvorsen Institute|Grid Futures Council|Norrland Energy Agency|Bureau of Storage Statistics|Pacific Systems Operator",
        ("installed capacity", "GW", 2, 190),
        ("levelised cost", "USD/MWh", 70, 310),
        ("cycle life", "cycles", 2_000, 12_000),
        ("round-trip efficiency", "%", 78, 94),
        ("project size", "MWh", 20, 3_200),
    ),
    _topic(
        "seagrass and kelp restoration",
        "seed-based planting|transplant survival|sediment stability|blue carbon|nursery habitat|marine heatwaves|urchin barrens|"
        "water clarity|nutrient runoff|monitoring drones|genetic diversity|mooring scars|tidal range",
        "Coastal Recovery Trust|Marlow Marine Station|Baltic Habitat Observatory|Tasman Kelp Programme|Institute for Shallow Seas",
        ("restored area", "ha", 2, 3_400),
        ("survival after two years", "%", 8, 81),
        ("cost per hectare", "EUR", 9_000, 410_000),
        ("carbon burial", "t CO2/ha/yr", 0.3, 6.2),
        ("shoot density", "shoots/m2", 40, 1_100),
    ),
    _topic(
        "heat pumps in old buildings",
        "flow temperature|radiator sizing|seasonal performance factor|hybrid systems|tariff design|insulation first|noise limits|"
        "installer training|refrigerant choice|defrost cycles|subsidy reform|peak demand|hydronic balancing",
        "Fieldgate Energy Lab|Housing Retrofit Observatory|Nordic Heat Council|Centre for Building Physics|Consumer Heat Panel",
        ("seasonal performance factor", "", 2.1, 4.9),
        ("installation cost", "GBP", 6_500, 24_000),
        ("annual sales", "thousand units", 12, 780),
        ("flow temperature", "°C", 32, 64),
        ("payback period", "years", 4, 21),
    ),
    _topic(
        "funding of open-source maintainers",
        "security audits|foundation grants|corporate sponsorship|bus factor|dependency risk|maintainer burnout|stewardship models|"
        "bug bounties|licence changes|download counts|governance|release automation|procurement rules",
        "Commons Software Survey|Kestner Foundation|Digital Infrastructure Desk|Public Code Agency|Lattice Research Group",
        ("median yearly income", "USD", 0, 48_000),
        ("share of unpaid maintainers", "%", 41, 79),
        ("audited packages", "packages", 20, 5_200),
        ("grant volume", "million USD", 0.4, 61),
        ("time to fix", "days", 3, 210),
    ),
    _topic(
        "night trains in Europe",
        "rolling stock|track access charges|sleeper berths|border crossings|timetable slots|multi-system locomotives|occupancy|"
        "public service contracts|through tickets|maintenance windows|couchette demand|depot capacity|open access operators",
        "Continental Rail Monitor|Institute for Long-Distance Travel|Agency for Rail Markets|Lindau Transport School|Passenger Council",
        ("passengers", "million", 0.2, 9.6),
        ("occupancy", "%", 44, 96),
        ("cost per train kilometre", "EUR", 9, 38),
        ("average age of coaches", "years", 4, 46),
        ("emissions", "g CO2/pkm", 11, 62),
    ),
    _topic(
        "sleep and memory in adolescents",
        "slow-wave sleep|school start times|actigraphy|spindle density|blue light|declarative memory|social jetlag|replication|"
        "sample size|cognitive load|caffeine|longitudinal cohorts|self-report bias",
        "Ostrom Sleep Laboratory|Cohort Data Consortium|Institute of Adolescent Health|Meridian Review Group|Northern Birth Cohort",
        ("sleep duration", "h", 5.4, 9.3),
        ("effect size", "d", 0.04, 0.71),
        ("participants", "adolescents", 38, 16_400),
        ("start time delay", "min", 15, 90),
        ("recall accuracy", "%", 41, 92),
    ),
)
