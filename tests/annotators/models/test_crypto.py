"""What is stored encrypted stays readable, and a text of one purpose is no text of another."""

import pytest
from cryptography.fernet import InvalidToken
from django.test import override_settings

from annotators.models.identity import Purpose, decrypt, encrypt

# Written with the key "a key of long ago", the first two before the purposes had names.
STORED = {
    Purpose.IDENTITY: (
        "5f0c…é worker 1",
        b"gAAAAABrBLYveUECy4PVYqzKRtixdk634sI5qlmdT7ZsjADHrOeR2_bR8aFyCUfnhLJsIbwhygUHLLqsH1d1zytqqW7arOzAv4nWdIVXqA9u"
        b"fXLDhymyJr4=",
    ),
    Purpose.CREDENTIAL: (
        "token ünd 2",
        b"gAAAAABrBLYv7ILtFBN3GEdUl4XBL_FAF7QlchxbuqhUPuc1dtXAAIaVimVpJKmQjU-SuRhRU46btXocPp1lrOHcv_T5SuDyyg==",
    ),
    Purpose.ADDRESS: (
        "cöde 3",
        b"gAAAAABrC9O9wnXnjowC6To6IBMRWe9kuAqyfxtJjwCS6UbUlNFU3p6OwnU3ZrZN0Q9Cwrj2IaiiEYI3NuUNOgJUgKca6k5X1w==",
    ),
}


def test_each_purpose_has_a_text_that_was_stored_before():
    assert set(STORED) == set(Purpose)


@pytest.mark.parametrize("purpose", Purpose)
def test_stored_texts_still_open_and_only_for_their_purpose_and_key(purpose):
    text, stored = STORED[purpose]
    with override_settings(PSEUDONYM_KEY="a key of long ago"):
        assert decrypt(purpose, memoryview(stored)) == text
        for other in set(Purpose) - {purpose}:
            with pytest.raises(InvalidToken):
                decrypt(other, stored)
    with pytest.raises(InvalidToken):
        decrypt(purpose, stored)


@pytest.mark.parametrize("purpose", Purpose)
def test_a_text_comes_back_and_no_two_ciphertexts_are_alike(purpose):
    first, second = encrypt(purpose, "worker 7"), encrypt(purpose, "worker 7")
    assert first != second and b"worker" not in first
    assert decrypt(purpose, first) == decrypt(purpose, second) == "worker 7"
