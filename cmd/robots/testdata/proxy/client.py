"""Asks for URLs with urllib and with http.client, and prints what came.

The proxy is that of the environment. Usage: client.py CA URL..."""

import http.client
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request

trust = ssl.create_default_context(cafile=sys.argv[1])
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
for url in sys.argv[2:]:
    try:
        with urllib.request.urlopen(url, context=trust) as answer:
            print("urllib", answer.status, answer.read().decode())
    except urllib.error.HTTPError as answer:
        print("urllib", answer.status, answer.headers["Proxy-Status"])
    except OSError as error:
        print("urllib", error)

    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "https":
        client = http.client.HTTPSConnection(proxy.hostname, proxy.port, context=trust)
        client.set_tunnel(parts.hostname, 443)
        target = parts.path
    else:
        client = http.client.HTTPConnection(proxy.hostname, proxy.port)
        target = url
    try:
        client.request("POST", target, body=iter([b"ab", b"c"]), headers={"Host": parts.hostname}, encode_chunked=True)
        answer = client.getresponse()
        print("http.client", answer.status, answer.read().decode() if answer.status == 200 else answer.headers["Proxy-Status"])
    except OSError as error:
        print("http.client", error)
