"""Follows all links: python3 crawl.py SERVICE START..."""
import re
import sys
import urllib.parse

import requests
import robotsgate

session = requests.Session()
session.headers["User-Agent"] = "ExampleBot/1.0 (+https://example.com/bot)"
for scheme in "http://", "https://":
    session.mount(scheme, robotsgate.Gate(sys.argv[1], "ExampleBot"))

queue = sys.argv[2:]
for url in queue:
    try:
        page = session.get(url, timeout=30)
        print("fetched", page.url, page.status_code, flush=True)
        links = [urllib.parse.urljoin(page.url, link) for link in re.findall('href="(.*?)"', page.text)]
        queue += [link for link in links if link not in queue]
    except robotsgate.Refused as no:
        print("refused", no.request.url, no, flush=True)  # the hop that is refused
    except requests.RequestException as error:
        print("failed", url, error, flush=True)
