"""What a process keeps of texts: the last ones, as much as was said."""

from annotators.pages.fast_path import SizedLRUCache

LETTERS = [chr(0x100 + n) for n in range(101)]


def read(kept: SizedLRUCache, *keys: str) -> list[str]:
    """Read these values, each as large as its key says; gives those that were made for it."""
    made = []
    for key in keys:
        assert kept.get_or_make(key, lambda key=key: made.append(key) or key, lambda value: int(value[1:])) == key
    return made


def test_a_value_is_made_once_as_long_as_there_is_room():
    kept = SizedLRUCache(1000)
    assert read(kept, "a9", "b9", "a9", "b9") == ["a9", "b9"] and kept.size == 18


def test_what_was_used_longest_ago_leaves_first():
    kept = SizedLRUCache(1000)
    read(kept, *(f"{letter}10" for letter in LETTERS[:100]))
    assert kept.size == 1000
    assert read(kept, f"{LETTERS[0]}10") == [], "it was used just now"
    assert read(kept, f"{LETTERS[100]}10") and kept.size == 1000
    assert read(kept, *(f"{letter}10" for letter in LETTERS[:2])) == [f"{LETTERS[1]}10"]


def test_what_is_too_large_is_not_kept():
    kept = SizedLRUCache(1000)
    assert read(kept, "a11", "a11", "b10", "b10") == ["a11", "a11", "b10"] and kept.size == 10


def test_it_can_be_emptied():
    kept = SizedLRUCache(1000)
    read(kept, "a1")
    kept.cache_clear()
    assert kept.size == 0 and read(kept, "a1") == ["a1"]
