"""The peers that are run: what is installed for each, which worker drives it, and which model of a replay it has."""

from msgspec import Struct

from bench.real_peers_billing import Asks


class Package(Struct, frozen=True, kw_only=True):
    """A peer's package, and the environment it lives in."""

    environment: str
    requirements: tuple[str, ...]
    packages: tuple[str, ...]
    """Whose versions are told."""
    worker: str
    """The module that drives it."""


class Variant(Struct, frozen=True, kw_only=True):
    """One way in which a peer is run."""

    name: str
    package: Package
    variant: str
    asks: Asks = "fresh"
    model: str = ""
    """The name of its model among the policies of a replay; empty if it has none."""


HERMES = Package(
    environment="hermes",
    requirements=("hermes-agent==0.19.0",),
    packages=("hermes-agent",),
    worker="bench.peers.hermes_compressor_worker",
)
LANGCHAIN = Package(
    environment="langchain",
    requirements=("langchain==1.4.7",),
    packages=("langchain", "langchain-core"),
    worker="bench.peers.langchain_worker",
)
PYDANTIC_AI = Package(
    environment="pydantic_ai",
    requirements=("pydantic-ai-slim[openai]==2.62.0", "pydantic-ai-harness==0.62.0"),
    packages=("pydantic-ai-slim", "pydantic-ai-harness"),
    worker="bench.peers.pydantic_ai_worker",
)
HEADROOM = Package(
    environment="headroom",
    requirements=("headroom-ai==0.42.0",),
    packages=("headroom-ai",),
    worker="bench.peers.headroom_worker",
)
LITELLM = Package(
    environment="litellm",
    requirements=("litellm==1.106.2",),
    packages=("litellm",),
    worker="bench.peers.litellm_worker",
)
OPENAI_AGENTS = Package(
    environment="openai_agents",
    requirements=("openai-agents==0.24.0",),
    packages=("openai-agents",),
    worker="bench.peers.openai_agents_worker",
)
STRANDS = Package(
    environment="strands",
    requirements=("strands-agents[openai]==1.62.0",),
    packages=("strands-agents",),
    worker="bench.peers.strands_worker",
)
DEEPAGENTS = Package(
    environment="deepagents",
    requirements=("deepagents==0.7.32", "langchain==1.4.7"),
    packages=("deepagents", "langchain"),
    worker="bench.peers.deepagents_worker",
)
LEANCTX = Package(
    environment="leanctx",
    requirements=("leanctx==0.3.1",),
    packages=("leanctx",),
    worker="bench.peers.leanctx_worker",
)
LLMTRIM = Package(
    environment="llmtrim",
    requirements=("llmtrim==0.13.7",),
    packages=("llmtrim",),
    worker="bench.peers.llmtrim_worker",
)
LLMSLIM = Package(
    environment="llmslim",
    requirements=("llmslim[langchain-agents]==0.11.2", "langchain==1.4.7"),
    packages=("llmslim", "langchain"),
    worker="bench.peers.llmslim_worker",
)

VARIANTS = (
    Variant(name="hermes", package=HERMES, variant="compressor", asks="other", model="hermes-classic"),
    Variant(name="langchain", package=LANGCHAIN, variant="defaults", model="langchain"),
    Variant(name="langchain-untrimmed", package=LANGCHAIN, variant="untrimmed", model="langchain-untrimmed"),
    Variant(name="langchain-editing", package=LANGCHAIN, variant="editing"),
    Variant(name="pydantic-ai-clear", package=PYDANTIC_AI, variant="clear"),
    Variant(name="pydantic-ai-tiered", package=PYDANTIC_AI, variant="tiered"),
    Variant(name="pydantic-ai-summarising", package=PYDANTIC_AI, variant="summarising"),
    Variant(name="headroom", package=HEADROOM, variant="default"),
    Variant(name="headroom-frozen", package=HEADROOM, variant="frozen"),
    Variant(
        name="openai-agents",
        package=OPENAI_AGENTS,
        variant="each-request",
        asks="extended",
        model="openai-default",
    ),
    Variant(
        name="openai-agents-runner",
        package=OPENAI_AGENTS,
        variant="runner",
        asks="extended",
        model="openai-default",
    ),
    Variant(name="strands", package=STRANDS, variant="summarizing"),
    Variant(name="litellm-compress", package=LITELLM, variant="compress"),
    Variant(name="litellm-trim", package=LITELLM, variant="trim"),
    Variant(name="deepagents", package=DEEPAGENTS, variant="defaults"),
    Variant(name="leanctx", package=LEANCTX, variant="strategies"),
    Variant(name="llmtrim", package=LLMTRIM, variant="agent"),
    Variant(name="llmslim", package=LLMSLIM, variant="tool-output"),
)
"""As in the first measurement, and some beside."""
