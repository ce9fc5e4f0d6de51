"""Plain sentences that take no side, to hide a text among: furniture, places, times of the day.

They are made from lists, so that there are thousands of them, and say nothing about films, politics, business, sport or
people. How neutral they are for a given model is for the experiment to measure, not for this list to promise.
"""

from collections.abc import Iterator

import numpy as np

THINGS = (
    *("table", "chair", "lamp", "shelf", "basket", "cup", "plate", "box", "jar", "bench", "clock", "carpet"),
    *("curtain", "bucket", "ladder", "rope", "pillow", "drawer", "bowl", "kettle", "mat", "broom", "crate", "stool"),
)
PLACES = (
    *("near the window", "next to the door", "in the corner", "under the stairs", "beside the wall", "in the hall"),
    *("on the ground floor", "behind the counter", "at the end of the corridor", "in the back room", "by the sink"),
)
TIMES = ("in the morning", "at noon", "in the afternoon", "in the evening", "on Monday", "on Thursday", "once a week")
COLOURS = ("grey", "brown", "white", "green", "blue", "yellow")
FORMS = (
    "The {thing} stands {place}.",
    "There is a {colour} {thing} {place}.",
    "The {colour} {thing} was moved {time}.",
    "A {thing} and a {other} are {place}.",
    "The {thing} is {colour}, and the {other} is {place}.",
    "{Time} the {thing} is put {place}.",
)


def neutral_sentences(seed: int = 0) -> Iterator[str]:
    """Sentences without end; the same seed gives the same ones.

    Example: `The grey lamp was moved at noon.`
    """
    random = np.random.default_rng(seed)

    def one_of(options: tuple[str, ...]) -> str:
        return options[int(random.integers(len(options)))]

    while True:
        thing, other = (THINGS[int(i)] for i in random.choice(len(THINGS), size=2, replace=False))
        time = one_of(TIMES)
        parts = {"thing": thing, "other": other, "place": one_of(PLACES), "colour": one_of(COLOURS), "time": time}
        yield one_of(FORMS).format(**parts, Time=time[0].upper() + time[1:])
