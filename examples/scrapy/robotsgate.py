"""Scrapy asks robots serve whether a request may be sent, and waits for its turn. In the settings:

    ROBOTSTXT_OBEY = False  # robots serve has the rules
    ROBOTSGATE = "http://127.0.0.1:8411"
    ROBOTSGATE_AGENT = "ExampleBot"
    DOWNLOADER_MIDDLEWARES = {"robotsgate.Turns": 901}  # next to the wire: redirects and retries are asked about, too
"""
import json
import urllib.request

from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future


class Turns:
    def __init__(self, settings):
        self.service, self.agent = settings["ROBOTSGATE"], settings["ROBOTSGATE_AGENT"]

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.settings)

    def ask(self, path, question):
        from twisted.internet import threads  # Scrapy chooses the reactor before it is imported

        def call():
            request = urllib.request.Request(
                self.service + path, json.dumps(question).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=150) as answer:
                return json.loads(answer.read() or "null")

        return maybe_deferred_to_future(threads.deferToThread(call))

    async def process_request(self, request, spider):
        from twisted.internet import reactor, task

        while True:
            turn = await self.ask("/v1/turns", {"url": request.url, "agent": self.agent, "wait": "0s"})
            if not turn["allowed"]:
                raise IgnoreRequest(f"robots.txt: {turn['decision']['rule'] or turn['decision']['reason']}")
            if turn["turn"]:
                request.meta["robotsgate"] = turn["turn"]
                return
            # The thread is free meanwhile, and so is the service.
            await maybe_deferred_to_future(task.deferLater(reactor, turn["retry_after"], lambda: None))

    async def end(self, request, how):
        turn = request.meta.pop("robotsgate", None)
        if turn:
            await self.ask("/v1/turns/" + turn, how)

    async def process_response(self, request, response, spider):
        after = response.headers.get("Retry-After", b"").decode()
        await self.end(request, {"status": response.status, "retry_after": after})
        return response

    async def process_exception(self, request, exception, spider):
        await self.end(request, {"status": 0})
