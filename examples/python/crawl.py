"""A polite crawler: robots serve says whether, and when. python3 crawl.py SERVICE START"""
import heapq, json, re, sys, time, urllib.parse, urllib.request as web

def ask(path, question):
    request = web.Request(sys.argv[1] + path, json.dumps(question).encode(), {"Content-Type": "application/json"})
    with web.urlopen(request, timeout=150) as answer:
        return json.loads(answer.read() or "null")

class Stay(web.HTTPRedirectHandler): redirect_request = lambda *_: None  # a redirect is a link

def fetch(url):
    try:
        with web.build_opener(Stay).open(web.Request(url, headers={"User-Agent": "ExampleBot"}), timeout=30) as page:
            return page.status, page.headers, page.read().decode(errors="replace")
    except OSError as error:  # an answer that is no page, or no answer
        return getattr(error, "code", 0), getattr(error, "headers", {}), ""

queue, seen = [(0, sys.argv[2])], {sys.argv[2]}
while queue:
    due, url = heapq.heappop(queue)
    time.sleep(max(0, due - time.time()))
    turn = ask("/v1/turns", {"url": url, "agent": "ExampleBot", "wait": "0s"})
    if not turn["allowed"]:
        print("refused", url, "robots.txt:", turn["decision"]["rule"] or turn["decision"]["reason"], flush=True)
    elif not turn["turn"]:  # the site wants time: others come first
        heapq.heappush(queue, (time.time() + turn["retry_after"], url))
    else:
        status, header, text = fetch(url)
        ask("/v1/turns/" + turn["turn"], {"status": status, "retry_after": header.get("Retry-After", "")})
        print("fetched", url, status, flush=True)
        for link in [header.get("Location", "")] + re.findall('href="(.*?)"', text):
            link = urllib.parse.urljoin(url, link)
            if link.startswith("http") and link not in seen:
                seen.add(link)
                heapq.heappush(queue, (0, link))
