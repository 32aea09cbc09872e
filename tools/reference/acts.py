"""The tables of acts and of the values of a plan as a file of the client, which imports nothing of heval: the command line makes its verbs from it."""

import json

from analysis.planning.checklist import HELP, TEXTS, WHOLE
from studies.acts import ACTS

from .markdown import as_sentence


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
                    "type": "int" if field.maximum else "str",
                    "choices": [value for value, _ in field.choices],
                    "default": field.default,
                }
                for field in act.fields
            ],
        }
        for act in ACTS.values()
    ]
    values = [
        {
            "name": name,
            "help": as_sentence(text),
            "type": "str" if name in TEXTS else "int" if name in WHOLE else "float",
        }
        for name, text in HELP.items()
    ]
    return json.dumps({"acts": acts, "plan": values}, indent=1, ensure_ascii=False) + "\n"
