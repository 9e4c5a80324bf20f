"""requests asks robots serve whether it may send, and waits for its turn, for each hop of a redirect, too:

    session.mount("http://", Gate("http://127.0.0.1:8411", "ExampleBot"))  # and "https://"
"""
import time

import requests
from requests.adapters import HTTPAdapter


class Refused(requests.RequestException):
    """By robots.txt. Nothing was sent."""


class Gate(HTTPAdapter):
    def __init__(self, service, agent):
        super().__init__()
        self.service, self.agent, self.asking = service, agent, requests.Session()

    def ask(self, path, question):
        answer = self.asking.post(self.service + path, json=question, timeout=150)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def send(self, request, **how):
        while True:
            turn = self.ask("/v1/turns", {"url": request.url, "agent": self.agent})
            if not turn["allowed"]:
                raise Refused(turn["decision"]["rule"] or turn["decision"]["reason"], request=request)
            if turn["turn"]:
                break
            time.sleep(turn["retry_after"])
        end = {"status": 0}
        try:
            response = super().send(request, **how)
            end = {"status": response.status_code, "retry_after": response.headers.get("Retry-After", "")}
            if not how.get("stream"):
                response.content  # the turn lasts until it is read
            return response
        finally:
            self.ask("/v1/turns/" + turn["turn"], end)
