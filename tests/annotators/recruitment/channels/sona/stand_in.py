"""SONA's stand-in, which answers as SONA does: errors come with HTTP 200."""

from urllib.parse import parse_qs, urlsplit

from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.loopback import LoopbackServer

SONA = REGISTRY["sona"]
TOKEN = "0badc0de" * 4
SETTINGS = {"site": "yourschool.sona-systems.com", "experiment_id": "123"}
SECRETS = {"credit_token": TOKEN}
CREDIT = (
    f"https://yourschool.sona-systems.com/webstudy_credit.aspx?experiment_id=123&credit_token={TOKEN}&survey_code=40351"
)
ANSWER = (
    '<WebstudyCreditResponse xmlns="http://tempuri.org/"><WebstudyCreditResult xmlns:a="http://schemas.example.org/sona" '
    'xmlns:i="http://www.w3.org/2001/XMLSchema-instance">{}</WebstudyCreditResult></WebstudyCreditResponse>'
)
NO_ERROR, NO_RESULT = '<a:Errors i:nil="true"/>', '<a:Result i:nil="true"/>'
ERROR = "<a:Errors><a:APIErrorInfo><a:ErrorNumber>3</a:ErrorNumber><a:Message>Invalid token {}</a:Message></a:APIErrorInfo></a:Errors>"
RESULT = "<a:Result><a:credit_status>{}</a:credit_status><a:experiment_id>123</a:experiment_id></a:Result>"


class FakeSona(LoopbackServer):
    """One credit a sign-up, whatever is asked; ``next_answer`` comes once instead of the true one. 'drop' breaks the connection."""

    def __init__(self):
        self.granted, self.asked, self.next_answer, self.status = set(), [], "", 200

    def answer(self, path: str) -> str:
        parts = urlsplit(path)
        asked = {name: value for name, (value,) in parse_qs(parts.query).items()}
        self.asked.append((parts.path, asked))
        if asked["credit_token"] != TOKEN:
            return ANSWER.format(ERROR.format(asked["credit_token"]) + NO_RESULT)
        self.granted.add(asked["survey_code"])
        answer, self.next_answer = self.next_answer or ANSWER.format(NO_ERROR + RESULT.format("G")), ""
        return answer

    def handle(self, handler):
        answer = self.answer(handler.path)
        if answer != "drop":
            handler.send_response(self.status)
            handler.end_headers()
            handler.wfile.write(answer.encode())
