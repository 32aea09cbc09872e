"""The surface of texts by system, for tests that have all texts in memory."""

from studies.stimuli.surface import SurfaceProfile


def surface_profiles(texts_by_system):
    profiles = {system: SurfaceProfile() for system in texts_by_system}
    for system, texts in texts_by_system.items():
        for text in texts:
            profiles[system].add(text)
    return profiles
