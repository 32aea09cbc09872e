"""What a process keeps of frozen designs."""


def forget_frozen_designs() -> None:
    """A frozen design is cached by its id for ever; what is rolled back gives its ids to what comes next."""
    from annotators.pages import sequence
    from annotators.places import batch_plan
    from studies.design import wording

    for cached in (
        wording.frozen_wording,
        batch_plan.frozen_batch_plan,
        sequence._cached_itinerary,
    ):
        cached.cache_clear()
