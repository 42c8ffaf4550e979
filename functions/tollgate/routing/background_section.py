"""The section of routing.yaml on a provider's background mode for responses."""

from tollgate.routing.scalars import Day, Sentence, Strict


class BackgroundSection(Strict):
    """Background responses that the provider runs itself, for as long as a response needs.

    The provider stores such a response until the gateway has read and deleted it. Without this
    section, the gateway answers background responses within 14 minutes.
    """

    source: Sentence
    """Web page on which the provider documents `background` on `/responses`."""
    checked: Day
    """Day on which that page was last read."""
