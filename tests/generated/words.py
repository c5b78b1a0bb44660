"""The vocabulary that generated sessions draw from."""

from types import MappingProxyType

# What a project, and with it a session, is about: its nouns are rare outside it.
DOMAINS = MappingProxyType(
    {
        "billing": "invoice ledger payout dunning proration refund settlement merchant chargeback tariff coupon "
        "subscription statement surcharge escrow remittance mandate receivable",
        "search": "posting segment tokenizer synonym facet ranker snippet shard corpus analyzer stopword bigram "
        "relevance crawler suggestion embedding lexicon recall",
        "telemetry": "span exporter histogram sampler gauge baggage collector exemplar attribute resource scrape "
        "percentile alert anomaly heartbeat probe watermark rollup",
        "scheduling": "roster shift allocation calendar recurrence reservation slot availability backlog dispatch "
        "rotation handover absence quorum timetable deadline waitlist",
        "inventory": "pallet stockroom replenishment bin sku carton courier manifest picklist backorder supplier "
        "consignment warehouse putaway dock return barcode freight",
        "identity": "principal credential grant claim issuer audience keyring passkey tenant impersonation scope "
        "assertion challenge enrolment realm delegation revocation nonce",
        "media": "transcode playlist bitrate thumbnail rendition manifest caption keyframe codec container poster "
        "waveform chapter subtitle stream fragment ingest bumper",
        "mapping": "tile geocode polyline isochrone waypoint elevation basemap centroid projection routing parcel "
        "boundary contour landmark bearing geofence raster simplifier",
    }
)

PLUMBING = tuple(
    "cursor batch window lease quota retry backoff payload envelope checksum offset snapshot registry pool queue "
    "worker handler pipeline adapter codec policy limit counter bucket channel partition replica digest fingerprint "
    "index entry record header footer schema migration fixture report session context request response buffer "
    "timeout threshold priority schedule trigger signal listener plan draft batcher router guard cache key marker "
    "lookup mapping filter rule scanner loader writer reader visitor builder resolver formatter parser".split()
)

# Names of local variables that need no explanation.
SHORT = tuple(
    "i j k n x y a b acc args buf cfg chunk cmd cnt conn cur data dst doc elem end evt fn head hit hits id idx info it "
    "item items kv last left line lo hi mid msg name node now num obj opts out pos prev ptr req res right row rows seen "
    "seq src start state step sum tmp total ts txn uid val vals ver".split()
)

VERBS = tuple(
    "apply archive assemble assign attach balance bind calculate cancel capture check claim clean close collect "
    "compare complete compose compute confirm convert count create decode defer delete deliver derive detach "
    "discard dispatch drain emit encode enqueue estimate evaluate expand expire export extract fetch filter finish "
    "flatten flush follow format gather group handle hydrate import inspect issue join list load locate lock "
    "match measure merge migrate normalize notify open parse patch persist poll prepare project promote publish "
    "reconcile record redact refresh register reject release render replace replay report resolve restore resume "
    "retry return revoke rotate round route sample schedule score select settle shard sign sort store summarize "
    "suspend sync trace track transfer translate trim update upsert validate verify visit watch wrap".split()
)

QUALITIES = tuple(
    "active allowed ambiguous archived available canonical closed cold concurrent corrupt current dangling deferred "
    "degraded distinct draft duplicate empty encoded exact expected expired external failed final foreign frozen "
    "global hidden idle inbound initial inner invalid legacy local locked malformed minimal missing mutable nested "
    "next nullable obsolete open optional orphaned outbound outer overdue parallel partial pending preferred "
    "previous primary private public queued raw recent remote required reserved secondary shared signed sparse "
    "stable stale strict temporary total trusted unique unknown unsigned upstream valid verbose visible weighted".split()
)

LAYERS = tuple(
    "api core storage jobs domain adapters services transport models events internal views commands gateways".split()
)

FAILURES = tuple(
    "Timeout Conflict Mismatch NotFound Overflow Exhausted Rejected Stale Malformed Denied Unavailable Expired "
    "Duplicate Corrupt Missing Unsupported Ambiguous Interrupted".split()
)

PEOPLE = tuple(
    "Amara Okafor|Lucía Ferrer|Jonas Lindqvist|Priya Raman|Tomasz Zielinski|Hanneke de Wit|Mateo Quiroga|Aiko Tanabe|"
    "Samir Haddad|Greta Olsen|Noah Whitfield|Ivana Kovač|Bao Nguyen|Claire Dubois|Dmitri Volkov|Fatima Zahra|"
    "Oisín Byrne|Renata Alves|Yusuf Demir|Wanjiru Kamau|Eleni Papadaki|Marek Novotny|Sofia Lombardi|Ravi Iyer|"
    "Zoe Hartmann|Kwame Mensah|Anneli Saar|Diego Paredes|Mirela Ionescu|Haruto Mori|Leila Rahimi|Piet Verbruggen".split(
        "|"
    )
)

CITIES = tuple(
    "Rotterdam|Gdańsk|Valparaíso|Nairobi|Osaka|Tampere|Bergamo|Halifax|Tucson|Leipzig|Porto|Bandung|Hobart|Accra|Lyon|"
    "Winnipeg|Busan|Bristol|Izmir|Guadalajara|Malmö|Pune|Tallinn|Antwerp".split("|")
)

COMPANIES = tuple(
    "Northvane|Halden Works|Corrigan & Pike|Tideline|Marrow Labs|Ostrava Freight|Quillon|Bluebarrow|Sable Analytics|"
    "Ferngate|Aldersonic|Pellworm|Copperhead Foods|Brightwater Rail|Lumenfold|Kestrel Optics|Vantry|Oakmere".split(
        "|"
    )
)


def domain_words(domain: str) -> tuple[str, ...]:
    """Return the nouns of one domain."""
    return tuple(DOMAINS[domain].split())
