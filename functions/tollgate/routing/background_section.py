"""The section of routing.yaml on a provider's background mode for responses."""

from tollgate.routing.scalars import Day, Sentence, Strict


class BackgroundSection(Strict):
    """The provider's background mode for responses, which may take up to six hours.

    The provider stores such a response until the gateway has read and deleted it. Without this
    section, the gateway answers background responses within 14 minutes.
    """

    source: Sentence
    """Web page on which the provider documents `background` on `/responses`."""
    checked: Day
    """Day on which that page was last read."""
