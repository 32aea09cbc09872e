"""The table of acts as a file of the client, which imports nothing of heval: the command line makes its verbs from it."""

import json

from studies.acts import ACTS


def acts_json() -> str:
    acts = [
        {
            "name": act.name,
            "label": act.label,
            "help": " ".join(act.consequences),
            "fields": [
                {
                    "name": field.name,
                    "help": field.help or field.label,
                    "is_required": field.is_required,
                    "is_number": bool(field.maximum),
                    "choices": [value for value, _ in field.choices],
                    "default": field.default,
                }
                for field in act.fields
            ],
        }
        for act in ACTS.values()
    ]
    return json.dumps(acts, indent=1, ensure_ascii=False) + "\n"
