"""Small studies for tests, built as a researcher would define them."""

from itertools import pairwise

from django.contrib.auth import get_user_model

from annotators.models import OutcomePay, Recruitment
from studies.design import checklist
from studies.models import (
    Arm,
    Contrast,
    ExclusionRule,
    Item,
    Output,
    Prompt,
    Question,
    Section,
    Study,
    StudyMember,
    System,
)  # fmt: skip
from studies.protocols import REGISTRY
from studies.protocols.spa import DEFAULT_EXPLANATION
from studies.services.known_answers import create_practice_item_and_delete_test_runs
from studies.services.questions import add_missing_questions, default_question_text, select_system_pairs
from tests.launching import launched

SYSTEMS = ("alpha", "beta", "gamma")
QUALITY = {"alpha": 0.0, "beta": 0.5, "gamma": 1.0, "delta": 1.2, "epsilon": 1.5}


def user(name="researcher", **options):
    model = get_user_model()
    return model.objects.filter(username=name).first() or model.objects.create_user(
        name, password="a password", is_staff=True, **options
    )


def text_of(system: str, prompt: int) -> str:
    """Words that a robot can tell systems by, and a person would read as a short text."""
    return f"The tale number {prompt} as one writer told it.\n\nIt went on for a while <b>({system[::-1]})</b> and then it ended well."


def draft_study(*, systems=SYSTEMS, prompts=12, target_n=6, owner=None, **columns) -> Study:
    """A draft with systems, prompts, outputs and one arm, and no section yet."""
    defaults = {
        "title": "Which writer is better (secret hypothesis)", "public_title": "Reading short stories", "seed": 7,
        "purpose": "You read a few short stories and tell us which writer you find better.",
        "instructions": "Read every story to the end.\n\n- Take your time.\n- There is no right answer.",
        "consent": "You take part of your own free will.", "debriefing": "Some writers were **programs**.",
        "contact": "research@example.org", "target_n": target_n, "reward": "2.50", "minutes": 12,
    }  # fmt: skip
    study = Study.objects.create(owner=owner, **defaults | columns)
    if owner:
        StudyMember.objects.create(study=study, user=owner, role=StudyMember.Role.OWNER)
    made = System.objects.bulk_create(System(study=study, name=name, is_human=name == "human") for name in systems)
    asked = Prompt.objects.bulk_create(
        Prompt(study=study, key=f"p{n:03}", text=f"Write the tale number {n}.") for n in range(prompts)
    )
    Output.objects.bulk_create(
        Output(system=system, prompt=prompt, text=text_of(system.name, n))
        for n, prompt in enumerate(asked)
        for system in made
    )
    Arm.objects.create(study=study, name="all")
    return study


def add_section(study: Study, protocol: str, *, position=1, m=2, reuses=None, pairs=None, settings=None) -> Section:
    """A section of any protocol, with the questions that the protocol says it begins with, or one on its kind of scale.

    ``pairs``: of systems, where the protocol asks about two by name; neighbours if not given.
    """
    declared = REGISTRY[protocol]
    section = Section.objects.create(
        study=study, position=position, protocol=protocol, m=m if declared.has_items else 0, reuses=reuses,
        settings=dict(declared.sample.settings) | (settings or {}),
    )  # fmt: skip
    if declared.has_directed_questions:
        add_missing_questions(
            section, pairs or select_system_pairs(section, "neighbours"), default_question_text(section), by=None
        )
        return section
    text = "How good is {label}?" if "{label}" in declared.placeholder_help else "Is it good?"
    plain = {"key": "asked", "text": text, "help": "What good means.", "scale": {"kind": declared.default_scale_kind}}
    Question.objects.bulk_create(
        Question(section=section, position=n, **columns)
        for n, columns in enumerate(declared.sample.questions or declared.questions or [plain], 1)
    )
    return section


def add_spa(study: Study, *, position=1, m=4, both=True, pairs=None, **settings) -> Section:
    """An SPA section that asks about neighbouring systems, in both orders, with a contrast for each pair."""
    section = Section.objects.create(
        study=study,
        position=position,
        protocol="spa",
        m=m,
        settings={"noun": "writer", "explanation": DEFAULT_EXPLANATION} | settings,
    )
    systems = list(study.systems.order_by("name"))
    by_name = {system.name: system for system in systems}
    chosen = [(by_name[x], by_name[y]) for x, y in pairs] if pairs else [(y, x) for x, y in pairwise(systems)]
    directed = [pair for x, y in chosen for pair in ([(x, y), (y, x)] if both else [(x, y)])]
    Question.objects.bulk_create(
        Question(
            section=section, position=n, key=f"{x.name}-{y.name}", x=x, y=y, scale={"kind": "percent"},
            text="Based on what you have read, what is the chance that writer {x} is a better writer than writer {y}?",
        )
        for n, (x, y) in enumerate(directed, 1)
    )  # fmt: skip
    for x, y in chosen:
        Contrast.objects.create(study=study, x=x, y=y, expected=">")
    return section


def add_rating(study: Study, *, position=2, reuses=None, m=1, **settings) -> Section:
    section = Section.objects.create(
        study=study, position=position, protocol="rating", m=m, reuses=reuses, settings={"noun": "story"} | settings
    )
    Question.objects.create(
        section=section, position=1, key="overall", text="How good is the story of writer {label}?",
        scale={"kind": "likert", "labels": ["very bad", "bad", "middling", "good", "very good"]},
    )  # fmt: skip
    return section


DOMAINS = ("news", "recipes", "stories")


def human_text_of(system: str, domain: str, number: int) -> str:
    """Words that a robot can tell authors by; to a person they are a short text of that domain."""
    return f"Of {domain}, number {number}: once upon a time ({system[::-1]}) somebody wrote this down, and it went on for a while."


def add_humanlike(
    study: Study, *, position=1, m=5, purpose="live", arms=(), keys=("source", "why", "change"), **settings
) -> Section:
    section = Section.objects.create(
        study=study, position=position, protocol="humanlike", m=m, purpose=purpose, settings={"noun": "text"} | settings
    )
    section.arms.set(arms)
    asked = [columns for columns in REGISTRY["humanlike"].questions if columns["key"] in keys]
    Question.objects.bulk_create(Question(section=section, position=n, **columns) for n, columns in enumerate(asked, 1))
    return section


def add_practice(section: Section, outputs, explanation="") -> Item:
    """A practice item of one output, or of a human and a machine output."""
    return create_practice_item_and_delete_test_runs(section, outputs, explanation, by=None)


def humanlike_draft(
    *, conditions=("none",), domains=DOMAINS, machines=("gpt3",), texts=10, m=5, target_n=12, owner=None, **columns
) -> Study:
    """The paper's experiment in small: arms of domain, machine and condition; human and machine texts on prompts of their own.

    Practice: three texts (or pairs) for each domain, of prompts that nobody is shown elsewhere.
    """
    study = draft_study(systems=("human", *machines), prompts=0, target_n=target_n, owner=owner, **columns)
    study.arms.all().delete()
    by_name = {system.name: system for system in study.systems.all()}
    numbers = {name: n for n, name in enumerate(by_name)}
    prompts = Prompt.objects.bulk_create(
        Prompt(study=study, key=f"{domain}-{name}-{n:03}", domain=domain, text=f"About {domain}.")
        for domain in domains for name in by_name for n in range(texts)
    )  # fmt: skip
    Output.objects.bulk_create(
        Output(system=by_name[name], prompt=prompt, text=human_text_of(name, domain, 1000 * numbers[name] + int(n)))
        for prompt in prompts for domain, name, n in [prompt.key.split("-")]
    )  # fmt: skip
    arms = {}
    for domain in domains:
        for machine in machines:
            for condition in conditions:
                arm = Arm.objects.create(
                    study=study, name=f"{domain} {machine} {condition}", domain=domain, condition=condition
                )
                arm.systems.set([by_name["human"], by_name[machine]])
                arms.setdefault(condition, []).append(arm)
    position = 1
    for condition, pair in (("examples", False), ("comparison", True)):
        if condition in arms:
            training = add_humanlike(
                study, position=position, m=3, purpose="training", arms=arms[condition], keys=("source",)
            )
            position += 1
            for domain in domains:
                for n in range(3):
                    prompt = Prompt.objects.create(study=study, key=f"{condition}-{domain}-{n}", domain=domain)
                    made = [
                        Output.objects.create(
                            system=by_name[name], prompt=prompt, text=human_text_of(name, domain, 10_000 * position + 10 * n + place)
                        )
                        for place, name in enumerate(("human", machines[-1]))
                    ]  # fmt: skip
                    add_practice(
                        training, made if pair else [made[n % 2]], "Look at “once upon a time”: both begin so."
                    )
    if "instructions" in arms:
        Arm.objects.filter(pk__in=[arm.pk for arm in arms["instructions"]]).update(
            instructions="Watch for repetition and wrong facts. Grammar and style mislead."
        )
    add_humanlike(study, position=position, m=m)
    return study


def add_survey(study: Study, *, position, purpose="live", questions=()) -> Section:
    section = Section.objects.create(study=study, position=position, protocol="survey", m=0, purpose=purpose)
    for n, options in enumerate(questions, 1):
        Question.objects.create(section=section, position=n, **options)
    return section


SCREENING = {
    "key": "fluent", "text": "Do you read English fluently?",
    "scale": {"kind": "choice", "options": [
        {"key": "yes", "label": "Yes"}, {"key": "no", "label": "No", "screens_out": True},
    ]},
}  # fmt: skip
COMMENT = {
    "key": "comment",
    "text": "Is there anything you would like to tell us?",
    "required": False,
    "scale": {"kind": "text"},
}


def spa_draft(*, m=4, both=True, with_rating=True, with_surveys=True, rules=(), spa_settings=None, **columns) -> Study:
    """The story experiment in small: screening, SPA, a rating of the first continuation, a closing comment."""
    study = draft_study(**columns)
    position = 1
    if with_surveys:
        add_survey(study, position=position, purpose="screening", questions=[SCREENING])
        position += 1
    spa = add_spa(study, position=position, m=m, both=both, **(spa_settings or {}))
    position += 1
    if with_rating:
        add_rating(study, position=position, reuses=spa, m=1)
        position += 1
    if with_surveys:
        add_survey(study, position=position, questions=[COMMENT])
    for n, (rule, settings) in enumerate(rules, 1):
        ExclusionRule.objects.create(study=study, position=n, rule=rule, settings=settings)
    return study


def warnings_of(study: Study) -> list[str]:
    return [problem.key for problem in checklist.find_design_problems(study) if not problem.is_blocking]


def spa_study(by=None, **options) -> Study:
    """``spa_draft``, launched."""
    return launched(spa_draft(owner=by, **options), by)


def recruitment(study: Study, channel="open_link", *, promises="nothing", **columns) -> Recruitment:
    """A link that promises the same for each early end, or says nothing of them (``promises=""``)."""
    link = Recruitment.objects.create(study=study, channel=channel, **columns)
    return promised(link, **dict.fromkeys(OutcomePay.Outcome.values, promises)) if promises else link


def promised(recruitment: Recruitment, **rules) -> Recruitment:
    """What an early end pays, said for each outcome: a rule, or an amount; "nothing" where nothing is given."""
    recruitment.outcome_pays.all().delete()
    said = dict.fromkeys(OutcomePay.Outcome.values, "nothing") | rules
    for outcome, words in said.items():
        rule, amount = ("amount", words) if words[0].isdigit() else (words, None)
        OutcomePay.objects.create(recruitment=recruitment, outcome=outcome, rule=rule, amount=amount)
    return recruitment


def panel(study: Study, **columns) -> Recruitment:
    """A generic panel that names people by ?who=, with a code for those who complete."""
    settings = {
        "person_parameter": "who",
        "session_parameter": "session",
        "return_complete": "https://panel.example.org/done?cc=C1&s={session}",
        "return_full": "FULL-9",
    }
    return recruitment(study, "generic", pool="panel", settings=settings, **columns)


def add_choice(study: Study, *, position=1, m=2, margin=None, text="Which is the better story?", **settings) -> Section:
    """A section of two choices with one criterion, defined, and a planned comparison of each pair that it shows."""
    section = Section.objects.create(
        study=study, position=position, protocol="two_choice", m=m, settings={"noun": "story"} | settings
    )
    Question.objects.create(
        section=section, position=1, key="better", text=text, scale={"kind": "output"}, criterion="naturalness",
        help="**Natural**: could a native speaker have written it?",
    )  # fmt: skip
    systems = list(study.systems.order_by("name"))
    for x, y in pairwise(systems):
        Contrast.objects.create(study=study, x=y, y=x, expected=">", margin=margin)
    return section


def add_relative(study: Study, *, position=1, m=2, margin=None, **settings) -> Section:
    """The relative scale."""
    section = add_section(study, "relative", position=position, m=m, settings={"noun": "story"} | settings)
    return _compared(section, margin)


def add_ranking(study: Study, *, position=1, m=2, margin=None, **settings) -> Section:
    """A ranking of all outputs of a prompt."""
    section = add_section(study, "ranking", position=position, m=m, settings={"noun": "story"} | settings)
    return _compared(section, margin)


def add_marks(study: Study, *, position=1, m=2, margin=None, **settings) -> Section:
    """Error marks with a score, compared on each of the two."""
    section = add_section(study, "marks", position=position, m=m, settings={"noun": "story"} | settings)
    return _compared(section, margin, ("score", "penalty"))


def _compared(section: Section, margin, estimands=("",)) -> Section:
    """Planned comparisons of neighbouring systems, the later one the better."""
    for x, y in pairwise(section.study.systems.order_by("name")):
        for estimand in estimands:
            Contrast.objects.create(study=section.study, x=y, y=x, estimand=estimand, expected=">", margin=margin)
    return section


def choice_study(
    *, m=2, margin=None, systems=("alpha", "beta"), prompts=12, target_n=6, settings=None, by=None, **columns
) -> Study:
    """Two choices between two systems, launched; ``settings`` are the section's."""
    defaults = {"instructions": "", "target_n": target_n, "prompts": prompts, "systems": systems}
    study = draft_study(owner=by, **defaults | columns)
    add_choice(study, m=m, margin=margin, **(settings or {}))
    return launched(study, by)


def painted(colours, prompts: int, media_root) -> list[list[str]]:
    """Images of one colour for each system, which differ only in their first byte of red: the stored names, a list a prompt."""
    import io

    from PIL import Image

    from studies.stimuli.images import encode_image, store_image

    names = []
    for n in range(prompts):
        names.append([])
        for colour in colours:
            out = io.BytesIO()
            Image.new("RGB", (48, 48), (colour, 5 * n, 90)).save(out, "PNG")
            image = encode_image(out.getvalue())
            store_image(media_root, image)
            names[-1].append(image.name)
    return names


def exposures_draft(media_root, *, levels=(1, 2, 4, 8), rules=(), criterion="", **columns) -> Study:
    """The image experiment in small: the same two painters after 1, 2, 4 and 8 images, under letters that go on from A to H.

    ``criterion``: asked about in the last section too, beside the overall question.
    """
    prompts = sum(levels)
    study = draft_study(systems=("raw", "scrambled"), prompts=prompts, instructions="", **columns)
    raw, scrambled = study.systems.order_by("name")
    for prompt, names in zip(study.prompts.order_by("key"), painted((230, 30), prompts, media_root), strict=True):
        for system, name in zip((raw, scrambled), names, strict=True):
            Output.objects.filter(system=system, prompt=prompt).update(text="", media=name, alt="")
    for position, m in enumerate(levels, 1):
        section = Section.objects.create(
            study=study, position=position, protocol="spa", m=m, settings={"noun": "artist", "labels": "continue"}
        )
        Question.objects.bulk_create(
            Question(
                section=section, position=n, key=f"{x.name}-{y.name}", x=x, y=y, scale={"kind": "percent"},
                text="What is the chance that artist {x} is better than artist {y}?",
            )
            for n, (x, y) in enumerate([(raw, scrambled), (scrambled, raw)], 1)
        )  # fmt: skip
    if criterion:
        Question.objects.bulk_create(
            Question(
                section=section, position=n, key=f"{criterion}-{n}", criterion=criterion, x=x, y=y, scale={"kind": "percent"},
                text=f"As to {criterion}, what is the chance that artist {{x}} is better than artist {{y}}?",
            )
            for n, (x, y) in enumerate([(raw, scrambled), (scrambled, raw)], 3)
        )  # fmt: skip
    Contrast.objects.create(study=study, x=raw, y=scrambled, expected=">")
    for n, (rule, settings) in enumerate(rules, 1):
        ExclusionRule.objects.create(study=study, position=n, rule=rule, settings=settings)
    return study
