"""The words in classes, ids and addresses that blockers of advertisements hide."""

import re

AD_WORDS = re.compile(r"\b(ads?|banner|track(ing|er)?|analytics|sponsor|popup)\b", re.IGNORECASE)
