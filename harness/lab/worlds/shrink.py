"""Makes the story of a disagreement smaller, as long as it can still have happened and the disagreement stays."""

from __future__ import annotations

from dataclasses import replace

from lab.worlds.compare import Disagreement, compare
from lab.worlds.known_disagreements import known_disagreement_of
from lab.worlds.story import Story, StoryStep
from lab.worlds.worlds import TooManyWorldsError


def shrunk_story(story: Story, difference: Disagreement) -> Story:
    """Returns a story with the same sort of difference from which no step can be left out."""
    smaller, name = True, known_disagreement_of(story, difference)
    while smaller:
        smaller = False
        for number in range(len(story.steps)):
            less = replace(story, steps=story.steps[:number] + story.steps[number + 1 :])
            if is_possible(less) and _differs(less, difference, name):
                story, smaller = less, True
                break
    return story


def is_possible(story: Story) -> bool:
    """Tells whether a story can have happened: what ended was begun; where fetches are seen, what was begun had been
    fetched; who says that it has the partition was given it,
    and who says that it loses it had it; and who was killed does nothing more."""
    seen = any(step.what == "fetch" for step in story.steps)
    return all(_can_follow(step, story.steps[:number], fetches_seen=seen) for number, step in enumerate(story.steps))


def _can_follow(step: StoryStep, before: tuple[StoryStep, ...], *, fetches_seen: bool) -> bool:
    mine = [one for one in before if one.who == step.who]
    if any(one.what == "kill" for one in mine):
        return step.what in ("hold", "heal", "tell", "give")
    match step.what:
        case "end" | "unsaid":
            same = [one.what for one in mine if one.value == step.value and one.what in ("begin", "end", "unsaid")]
            return same[-1:] == ["begin"]
        case "begin":
            fetched = [one.value for one in mine if one.what == "fetch"]
            came = not fetches_seen or (bool(fetched) and fetched[-1] <= step.value)
            return came and any(one.what == "assigned" for one in mine)
        case "assigned":
            given = [one.who for one in before if one.what == "give" or (one.what == "hold" and one.value)]
            return step.who in given
        case "revoked" | "lost":
            return [one.what for one in mine if one.what in ("assigned", "revoked", "lost")][-1:] == ["assigned"]
        case "heal":
            return [one.what for one in mine if one.what in ("cut", "heal")][-1:] == ["cut"]
        case "hold":
            return bool(step.value) or any(one.what == "hold" for one in mine)
    return True


def _differs(story: Story, difference: Disagreement, name: str | None) -> bool:
    """Whether a story has such a difference, which the same entry of `KNOWN` explains (None: no entry)."""
    try:
        found = compare(story).differences
    except TooManyWorldsError:
        return False
    same = [one for one in found if (one.name, one.kind) == (difference.name, difference.kind)]
    return any(known_disagreement_of(story, one) == name for one in same)
