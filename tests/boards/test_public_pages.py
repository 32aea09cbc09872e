"""Public pages of boards: what they show, for whom, with which headers, and how many queries they need."""

import json
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.core.cache import cache

from boards.models import Board, BoardMetricTable
from boards.services import snapshots
from boards.views import pages
from studies.design.serialization import canonical_json, sha256_of
from tests.boards import builders, stored
from tests.builders import user

pytestmark = pytest.mark.django_db
PAGES = ("", "2/", "history/", "embed/", "2/embed/")
FILES = (
    "2/scores.csv",
    "2/scores.json",
    "2/scores.tex",
    "2/figure.svg",
    "history/figure.svg",
    "rss/",
    "atom/",
    "badge/2.svg",
)


def address(path: str, board: str = "tales") -> str:
    return f"/boards/{board}/{path}"


def text_of(client, path: str) -> str:
    response = client.get(address(path))
    assert response.status_code == 200, path
    return response.content.decode()


@pytest.fixture
def board():
    cache.clear()
    return stored.published_board()


def test_the_page_of_a_board_shows_scores_rank_sets_and_what_they_are_about(board, client):
    html = text_of(client, "")
    for words in (
        "80.8 +2.1/−2.3",
        "1–2",
        "Scores hold for people and prompts like these: 12 prompts, drawn with seed",
        "600 labels by 40 annotators in 1 round, from 2026-01-05 to 2026-01-09.",
        "Snapshot 2",
        "12.50 USD",
        "1 (2026-01-09)",
    ):
        assert words in html, words
    assert html.count('<tr class="top">') == 2
    assert "Simulated" not in html
    assert html.index(">human<") < html.index(">good<") < html.index(">weak<")


def test_a_subsample_and_robots_are_named(client):
    board = builders.open_board(population="subsample", sample_size=5)
    stored.add_snapshot(board, stored.result(board, {1: {"overall": stored.score(50.0)}}, is_simulated=True))
    for path in ("", "embed/", "1/scores.tex"):
        text = text_of(client, path)
        assert "for exactly this subsample of 5 prompts" in text
        assert "Simulated" in text
    assert "simulated" in text_of(client, "badge/1.svg")


@pytest.mark.parametrize(
    ("asked", "first", "chosen"),
    [
        ("name", "good", "ascending"),
        ("-name", "weak", "descending"),
        ("score-fluency", "good", "descending"),
        ("-score-overall", "weak", "ascending"),
        ("cost", "human", "ascending"),
        ("-cost", "weak", "descending"),
        ("team", "good", "ascending"),
        ("nonsense", "human", "ascending"),
        ("score-nonsense", "human", "ascending"),
    ],
)
def test_links_sort_the_table_and_unknown_orders_are_the_default(board, client, asked, first, chosen):
    html = text_of(client, f"?sort={asked}")
    body = html[html.index("<tbody>") :]
    positions = {name: body.index(f">{name}<") for name in ("human", "good", "weak")}
    assert min(positions, key=lambda name: positions[name]) == first
    assert html.count("aria-sort=") == 1
    assert f'aria-sort="{chosen}"' in html


def test_a_chosen_order_is_reversed_by_its_link(board, client):
    assert 'href="?sort=-name#scores"' in text_of(client, "?sort=name")
    assert 'href="?sort=name#scores"' in text_of(client, "?sort=-name")


def test_a_board_without_results_says_when_they_come(client):
    builders.open_board()
    assert "There are no results yet" in text_of(client, "")
    for path in (*PAGES[1:], *FILES[:5], *FILES[7:]):
        assert client.get(address(path)).status_code == 404, path
    assert client.get(address("rss/")).status_code == 200


def test_public_pages_set_no_cookie_and_say_who_may_keep_and_frame_them(board, client):
    for path in (*PAGES, *FILES):
        response = client.get(address(path))
        assert response.status_code == 200, path
        assert not response.cookies, path
        assert "Cookie" not in response.get("Vary", ""), path
        assert response["Cache-Control"] == "public, max-age=60", path
        is_framable = path.endswith("embed/")
        assert ("frame-ancestors *" in response["Content-Security-Policy"]) == is_framable, path
        assert response.has_header("X-Frame-Options") != is_framable, path
        again = client.get(address(path), headers={"If-None-Match": response["ETag"]})
        assert again.status_code == 304, path
        assert again["Content-Security-Policy"] == response["Content-Security-Policy"], path
        assert again.has_header("X-Frame-Options") != is_framable, path
        later = client.get(address(path), headers={"If-Modified-Since": response["Last-Modified"]})
        assert later.status_code == 304, path


def test_a_page_is_rendered_once_until_something_on_it_changes(board, client):
    pages._results_html.cache_clear()
    first = client.get(address(""))
    assert client.get(address("")).content == first.content
    assert pages._results_html.cache_info().misses == 1
    Board.objects.filter(pk=board.pk).update(title="Fables")
    changed = client.get(address(""), headers={"If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert "Fables" in changed.content.decode()


def test_the_number_of_queries_is_constant(client, django_assert_max_num_queries):
    stored.published_board()
    stored.large_board(n_systems=60, n_snapshots=6)
    for name in ("tales", "large"):
        for path, n in (("", 7), ("2/", 8), ("history/", 8), ("embed/", 6), ("2/scores.csv", 7), ("rss/", 8)):
            pages._results_html.cache_clear()
            with django_assert_max_num_queries(n):
                assert client.get(address(path, name)).status_code == 200


def test_the_list_has_public_boards_and_those_of_a_member(board, client):
    other = builders.rating_template(board.owner)
    builders.open_board(board.owner, other, slug="secret", title="Secret tales", visibility="members")
    anonymous = client.get("/boards/")
    assert "Tales" in anonymous.content.decode()
    assert "Secret" not in anonymous.content.decode()
    assert not anonymous.cookies
    assert (anonymous["Cache-Control"], anonymous["Vary"]) == ("public, max-age=60", "Cookie")
    client.force_login(board.owner)
    own = client.get("/boards/")
    assert "Secret tales" in own.content.decode()
    assert own["Cache-Control"] == "private, no-cache"
    client.force_login(user("a stranger"))
    assert "Secret" not in client.get("/boards/").content.decode()


def test_snapshots_have_permanent_addresses_and_older_ones_say_so(board, client):
    assert "This is an older snapshot" in text_of(client, "1/")
    assert "90.0 +3.0/−3.3" in text_of(client, "1/")
    assert "older snapshot" not in text_of(client, "2/")
    assert f'<link rel="canonical" href="{settings.SITE_URL}/boards/tales/">' in text_of(client, "2/")
    assert client.get(address("3/")).status_code == 404


def test_history_shows_each_system_over_snapshots(board, client):
    html = text_of(client, "history/")
    assert "90.0 +3.0/−3.3 (1)" in html
    assert "80.8 +2.1/−2.3 (1–2)" in html
    assert html.count("<circle") == 5
    # The newest is first, where a phone shows it.
    assert html.index("80.8 +2.1/−2.3 (1–2)") < html.index("90.0 +3.0/−3.3 (1)")


def test_the_table_as_csv(board, client):
    header, *lines = [line.split(",") for line in text_of(client, "2/scores.csv").strip().split("\n")]
    first = dict(zip(header, lines[0], strict=True))
    assert (first["system"], first["overall_estimate"], first["overall_rank_high"]) == ("human", "80.8", "2")
    assert first["marks"] == "human reference anchor"
    assert [line[0] for line in lines] == ["1", "2", "3", "4"]


def test_the_result_as_json_has_the_hash_that_it_names(board, client):
    read = json.loads(text_of(client, "2/scores.json"))
    # This snapshot is from before codes of studies were left out of results.
    assert read["left_out"] == ["rounds.study"] and "study" not in read["result"]["rounds"][0]
    for facts in read["result"]["rounds"]:
        facts["study"] = "0"
    assert sha256_of(canonical_json(read["result"])) == read["result_sha256"]
    assert read["submissions"]["2"] == {
        "name": "good", "team": "The makers", "url": "https://example.org/good", "is_anchor": False, "is_human": False,
        "is_reference": False, "is_withdrawn": False, "received": read["submissions"]["2"]["received"],
    }  # fmt: skip
    assert read["address"].endswith("/boards/tales/2/")


@pytest.mark.slow
def test_pages_show_a_snapshot_that_was_computed(client):
    """The fields of stored results are those that pages read."""
    board = builders.open_board(template=builders.rating_template(user(), keys=("overall", "fluency")))
    team, _ = builders.team_of(board)
    builders.submit(board, team, "good")
    builders.play_round(board)
    builders.submit(board, team, "weak")
    builders.play_round(board, seed=2)
    snapshot = snapshots.take_snapshot(board, board.owner)
    html = text_of(client, "")
    assert "<strong>Simulated.</strong>" in html
    overall = snapshots.display_rows(snapshot)[0]["scores"]["overall"]
    assert f"{overall['estimate']:.1f} +{overall['high'] - overall['estimate']:.1f}/−" in html
    assert "96 labels by" in html
    assert "<li>Anchors " in html
    read = json.loads(text_of(client, "1/scores.json"))
    text = json.dumps(read["result"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert sha256_of(text) == read["result_sha256"]
    for path in (*PAGES, *FILES):
        assert client.get(address(path.replace("2/", "1/"))).status_code == 200, path


def test_the_table_as_latex_escapes_names(board, client):
    board.submissions.filter(number=2).update(name="50% _better_ & {more}")
    text = text_of(client, "2/scores.tex")
    assert r"1--2 & \textbf{50\% \_better\_ \& \{more\}} & $79.0^{+3.0}_{-3.3}$" in text


def test_pictures_are_well_formed_and_have_words(board, client):
    board.submissions.filter(number=2).update(name="<b>&'good'")
    Board.objects.filter(pk=board.pk).update(title='Tales & "fables" <1>')
    for path in ("2/figure.svg", "history/figure.svg", "badge/2.svg"):
        root = ElementTree.fromstring(text_of(client, path))
        assert root.get("aria-label", "").startswith('Tales & "fables" <1>:')
    assert "79.0 +3.0/−3.3" in text_of(client, "badge/2.svg")
    assert client.get(address("badge/9.svg")).status_code == 404


def test_a_score_without_interval_or_rank_is_shown_with_its_reason(client):
    board = builders.open_board()
    bare = stored.score(50.0, ranks=None) | {"low": None, "high": None, "status": "too_few", "reason": "two annotators"}
    stored.add_snapshot(board, stored.result(board, {1: {"overall": bare}}))
    html = text_of(client, "")
    assert ">50.0<" in html
    assert "Not computed: two annotators." in html
    assert "rank –" in text_of(client, "badge/1.svg")
    nothing = bare | {"estimate": None}
    stored.add_snapshot(board, stored.result(board, {1: {"overall": nothing}}))
    assert "<svg" not in text_of(client, "")
    assert client.get(address("2/figure.svg")).status_code == 404


def test_stored_checks_become_sentences(client):
    board = builders.open_board()
    equating = {"linked": [[1], [2, 3]], "drift": {"pvalue": 0.0004}, "anchors_agree": {"pvalue": 0.03}}
    overall = {"status": "ok", "reason": "", "annotators": 40, "labels": 600, "equating": equating}
    audit = [{"name": "position", "fires": True}, {"name": "cycles", "fires": False}, {"name": "drift", "fires": True}]
    removal = {"n": 4, "total": 600, "is_confirmed": True}
    checks = {
        "tables": {"overall": overall},
        "audit": audit,
        "sensitivity": {"answers": removal, "people": {"n": 1, "total": 40, "is_confirmed": False}},
        "better": [{"submission": 1, "is_better": True}],
    }
    stored.add_snapshot(board, stored.result(board, {1: {"overall": stored.score(50.0)}}, **checks))
    html = text_of(client, "")
    for words in (
        "No anchor links these groups of rounds, so scores hold only within each: 1; 2, 3.",
        "Anchors scored differently in different rounds (p &lt; .001).",
        "Anchors did not move alike (p = .030)",
        "Annotators favour the output that is shown first.",
        "Without 4 labels of 600, another system would be first.",
        '<span class="kind">new best</span>',
    ):
        assert words in html, words
    for words in ("go in circles", "found nothing", "of 40"):
        assert words not in html, words


def test_checks_that_found_nothing_say_so(client):
    board = builders.open_board()
    overall = {"status": "ok", "reason": "", "equating": {"linked": [[1, 2]], "drift": {"pvalue": 0.4}}}
    audit = [{"name": "position", "fires": False}]
    result = stored.result(board, {1: {"overall": stored.score(50.0)}}, tables={"overall": overall}, audit=audit)
    stored.add_snapshot(board, result)
    html = text_of(client, "")
    assert "It is not shown that anchors differ between rounds (p = .400)." in html
    assert "The audit of these results found nothing." in html
    assert "would be first" not in html and "outside 0 to 100" not in html
    outside = stored.result(board, {1: {"overall": stored.score(1.0)}}, tables={"overall": overall}, audit=audit)
    stored.add_snapshot(board, outside)
    assert "interval can lie outside 0 to 100" in text_of(client, "")


def test_a_board_of_preferences_shows_ratings_and_categories(client):
    board = builders.open_board()
    rated = [
        stored.score(64.0 - place, ranks=(1, 2))
        | {"rating": 1100.4 - place, "rating_low": 1090.0, "rating_high": 1120.0}
        for place in range(2)
    ]
    covariates = [{"name": "length (log of words)", "pvalue": 0.02}]
    by_category = {"news": [{"submission": 1} | rated[0]], "": [{"submission": 1} | rated[1]]}
    overall = {"status": "ok", "reason": "", "covariates": covariates, "by_category": by_category}
    result = stored.result(board, {1: {"overall": rated[0]}}, tables={"overall": overall}, kind="preferences")
    stored.add_snapshot(board, result)
    html = text_of(client, "?sort=points")
    for words in (
        ">64.0 +3.0/−3.3<",
        ">1,100 +20/−10<",
        'aria-sort="descending"',
        "<summary>news</summary>",
        "<summary>no category</summary>",
        "Ratings are corrected for the style of outputs: length (log of words) (p = .020).",
        "A score is the chance that annotators prefer the system",
    ):
        assert words in html, words
    assert "overall_rating_high" in text_of(client, "1/scores.csv")
    # The paper has no such score: neither its page nor its table of metrics shows an empty column.
    assert "do not exist here" in text_of(client, "1/paper/") and "<table" not in text_of(client, "1/paper/")
    row = {"submission": 1, "human": rated[0] | {"reason": ""}, "metrics": {}}
    of_paper = row | {"human": {"estimate": None, "low": None, "high": None, "n": None}, "bold": ["human"]}
    metrics = {
        "criterion": "overall",
        "reason": "",
        "metrics": [],
        "rows": [row],
        "agreements": [],
        "paper": [of_paper],
    }
    shown = board.snapshots.get()
    BoardMetricTable.objects.create(snapshot=shown, result={"level": 0.95, "tables": [metrics]}, result_sha256="0" * 64)
    html = text_of(client, "1/metrics/")
    assert "so this table has none" in html and html.count(">Human<") == 1


def test_a_board_of_scores_has_no_ratings(board, client):
    assert "Rating" not in text_of(client, "")
    assert "rating" not in text_of(client, "2/scores.csv")


SAMPLES = [
    {
        "number": number,
        "prompts": 8,
        "renewed": 2 * number - 2,
        "seed": number,
        "date": "2026-11-27",
        "first_round": number,
    }
    for number in (1, 2)
]


def test_a_reader_chooses_the_systems_of_the_history(client):
    board = stored.published_board()
    last = board.snapshots.order_by("-number").first().result
    stored.add_snapshot(board, last | {"samples": SAMPLES})
    page = client.get(f"/boards/{board.slug}/history/?system=4&system=99&system=x").content.decode()
    figure = page.split("<svg")[1].split("</svg>")[0]
    assert "<title>weak</title>" in figure and "<title>good</title>" not in figure
    assert "The sample was renewed." in figure and 'value="4" checked' in page and 'value="2" checked' not in page
    picture = client.get(f"/boards/{board.slug}/history/figure.svg?system=4").content.decode()
    assert "<title>weak</title>" in picture and "<title>good</title>" not in picture
    assert "<title>good</title>" in client.get(f"/boards/{board.slug}/history/").content.decode()
