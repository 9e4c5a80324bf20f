"""Follows all links: scrapy runspider crawl.py -s ROBOTSGATE=http://127.0.0.1:8411 -a start=http://example.com/"""
import scrapy
from scrapy.exceptions import IgnoreRequest


class Crawl(scrapy.Spider):
    name = "crawl"
    custom_settings = {
        "ROBOTSTXT_OBEY": False,
        "ROBOTSGATE_AGENT": "ExampleBot",
        "USER_AGENT": "ExampleBot/1.0 (+https://example.com/bot)",
        "DOWNLOADER_MIDDLEWARES": {"robotsgate.Turns": 901},
        "RETRY_TIMES": 0,
        "LOG_LEVEL": "ERROR",
    }

    def start_requests(self):
        for url in self.start.split():
            yield scrapy.Request(url, errback=self.failed)

    def parse(self, response):
        print("fetched", response.url, response.status, flush=True)
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, errback=self.failed)

    def failed(self, failure):
        refused = failure.check(IgnoreRequest) and "robots.txt" in str(failure.value)
        print("refused" if refused else "failed", failure.request.url, failure.value, flush=True)
