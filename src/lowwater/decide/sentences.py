"""What every reason code means, as one sentence with its numbers in it."""

from lowwater.decide.reasons import Code

_DUE = "The prompt of {prompt} tokens has reached the {limit} of {trigger}"
_WALL = "The prompt of {prompt} tokens has reached the wall of {wall}"
_LEAF = "{raw} tokens before the protected newest messages were never summarised"
_COOLING = "The summarizer failed (failures in a row: {failures}) and is left alone for another {seconds} s"

SENTENCES: dict[Code, str] = {
    "disabled": "Compaction is switched off (enabled: false), so the prompt of {prompt} tokens is sent as it is.",
    "policy-never": "The policy `never` compacts only what does not fit: the prompt has {prompt} tokens, the wall is "
    "at {wall}.",
    "below-threshold": "The prompt of {prompt} tokens is below the threshold of {threshold}.",
    "below-hygiene": "The prompt of {prompt} tokens is below the hygiene limit of {hygiene}.",
    "too-few-messages": "The prompt of {prompt} tokens has reached the hygiene limit of {hygiene}, but it has only "
    "{messages} messages, and fewer than {least} are left alone.",
    "nothing-offered": f"{_DUE}, but there is nothing to remove outside its protected start and end.",
    "nothing-by-hand": "Asked for by hand, but there is nothing to remove from the prompt of {prompt} tokens.",
    "no-leaf-offered": f"{_LEAF}, enough for a chunk of {{chunk}}, but no chunk of the {{assembled}} tokens can be "
    "taken without splitting a tool call from its result.",
    "prune-alone-too-small": f"{_DUE}; pruning would reclaim only {{reclaims}}, less than the {{minimum}} that make "
    "it count, and there is nothing to summarise.",
    "prune-alone-falls-short": f"{_DUE}; pruning would leave {{pruned}}, more than the {{target}} it has to get down "
    "to, and there is nothing to summarise.",
    "too-little-raw": f"Only {_LEAF}, less than a chunk of {{chunk}}; the prompt has {{assembled}} tokens "
    "(pressure: {pressure}).",
    "budget-headroom": "The prompt of {assembled} tokens is below {ceiling}, where a pass is forced: there is room, and "
    f"the cache is left alone. {_LEAF} (pressure: {{pressure}}).",
    "cache-aware": "A pass would remove {reduction} of {assembled} tokens, less than the {least_reduction} that are "
    f"worth breaking the cache for. {_LEAF} (pressure: {{pressure}}).",
    "does-not-fit": f"{_WALL}, and nothing can be removed: take a model with a larger window, or send less.",
    "ceiling-out-of-reach": "The prompt of {prompt} tokens is above the ceiling of {ceiling} (max_view_tokens), and nothing more can be "
    "removed: the system prompt, the tools, the users' words and the newest exchange alone are larger. Raise the ceiling, or send less.",
    "too-many-bytes": "The request of {bytes} bytes is larger than the {limit} that the provider takes, and nothing can be "
    "removed: send fewer or smaller images.",
    "irreducible": "The last compaction could get no lower than {floor} tokens (in vain, in a row: {tries}). The "
    "next try is due at {retry_at} tokens (now {prompt}), when {needed} tokens that are new can be removed (now "
    "{fresh}), or in {seconds} s.",
    "cooling-down": f"{_COOLING}; what needs no model would reclaim {{reclaims}} of {{prompt}} tokens, less than the "
    "{minimum} that make it count.",
    "rent-cannot-be-due": "The prompt of {prompt} tokens stays as it is: whatever could be removed from it, carrying that has "
    "cost less so far than rewriting the cache behind it would.",
    "undone": "A compaction was undone, so the prompt of {prompt} tokens stays as it is unless a size forces a change; calls "
    "until things are bought again: {calls}.",
    "rent-rests": "The prompt of {prompt} tokens stays as it is: when it was last looked through, nothing in it was nearly "
    "worth its price, and it has hardly grown since.",
    "nothing-to-buy": "The prompt of {prompt} tokens stays as it is: there is next to nothing to remove outside its protected "
    "start and end.",
    "rent-below-price": "Removing {removes} of {prompt} tokens would cost {price} now (the cache is {warm}). Carrying them "
    "has cost {rent} so far, which is less, so they stay. Calls until it is due at this rate: {calls}.",
    "too-young-to-pay": "Removing {removes} of {prompt} tokens would cost {price} now (the cache is {warm}) and save {saves} at "
    "each call. A session as young as this one often ends before that has paid, so they stay; so far they have cost {rent}. Calls until it is old enough: {calls}.",
    "by-hand": "Asked for by hand: the prompt of {prompt} tokens should come down to {expected}.",
    "wall": f"{_WALL} and must be made to fit; compacting its older messages should leave {{expected}}.",
    "wall-into-tail": f"{_WALL} and must be made to fit. Compacting its older messages would leave {{middle}}, "
    "so its protected end shrinks too, until at most {enough} are left; all steps together should leave {expected}.",
    "ceiling-into-tail": "The prompt of {prompt} tokens is above the ceiling of {ceiling} (max_view_tokens). Compacting its older "
    "messages would leave {middle}, too much for several turns of growth, so its protected start and end shrink too, until at most "
    "{enough} are left; all steps together should leave {expected}.",
    "byte-limit": "The request of {bytes} bytes is larger than the {limit} that the provider takes, so it must be made "
    "smaller whatever its tokens.",
    "cliff": "The prompt of {prompt} tokens has reached {cliff}, from where on the whole request is billed at higher "
    "prices; compacting it should leave {expected}.",
    "rent-paid": "Carrying {removes} of {prompt} tokens has cost {rent} so far, no less than the {price} that removing them "
    "costs now (the cache is {warm}), so they go.",
    "waiting-in-vain": "Removing {removes} of {prompt} tokens costs {price} now (the cache is {warm}), and carrying them on "
    "costs {saves} at each call, more than waiting can be expected to save, so they go; so far they have cost {rent}.",
    "free-now": "With {removes} of {prompt} tokens removed the next call is {gain} cheaper at once (the cache is {warm}), "
    "what may be lost included, so they go.",
    "summary-due": f"{_DUE}; a summary of the older messages should leave {{expected}}.",
    "prune-suffices": f"{_DUE}; pruning alone should leave {{pruned}}, no more than the {{target}} it has to get down "
    "to, so no summary is needed.",
    "prune-falls-short": f"{_DUE}; pruning alone should leave {{pruned}}, more than the {{target}} it has to get down "
    "to, so a summary follows at once.",
    "prune-too-small": f"{_DUE}; pruning would reclaim only {{reclaims}}, less than the {{minimum}} that make it "
    "count, so the older messages are summarised instead.",
    "prune-and-summary": f"{_DUE}; pruning should reclaim {{reclaims}}, and with the summary that always follows "
    "{expected} should be left.",
    "leaf-due": f"{_LEAF}; a pass removes {{reduction}} of {{assembled}} tokens, no less than the {{least_reduction}} "
    "that are worth breaking the cache for (pressure: {pressure}).",
    "leaf-pressure": "The prompt of {assembled} tokens has reached {ceiling} (pressure: {pressure}), so a pass that removes "
    f"{{reduction}} goes ahead whatever the cache says. {_LEAF}.",
    "full-sweep": "The prompt of {assembled} tokens is above {trigger}, the budget's threshold: passes over the oldest "
    "messages and summaries (on offer: {passes}) are made until at most {enough} are left; all of them should leave "
    "{expected}.",
    "cooling-down-prune": f"{_COOLING}; until then only what needs no model is done, which should reclaim {{reclaims}} "
    "of {prompt} tokens and leave {expected}.",
    "too-large-at-the-door": "Tool results that came in (so many: {results}) were longer than {limit} tokens and were shortened "
    "before they entered the prompt.",
    "no-room-at-the-door": "Tool results that came in (so many: {results}) would have made a prompt of {prompt} tokens, more than the {limit} "
    "that may be sent. The last compaction was only {turns} turns ago, so they were shortened instead of compacting again.",
    "images-refused": "The provider refused the request for its images, so older ones were replaced by placeholders (messages: {messages}).",
    "not-smaller": "What was tried ({wanted}) would not have made the prompt of {prompt} tokens smaller, so it stays as "
    "it is.",
}
