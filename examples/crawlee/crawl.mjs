// A Crawlee crawler that takes a turn from robots serve before each request, and treats a redirect as a link: below its
// hooks Crawlee would follow one without asking. node crawl.mjs SERVICE START...
import { Configuration, HttpCrawler, NonRetryableError, ProxyConfiguration, log } from '@crawlee/http';
import { setTimeout as sleep } from 'node:timers/promises';

const [service, ...start] = process.argv.slice(2);
const agent = 'ExampleBot';
log.setLevel(log.LEVELS.OFF);

async function ask(path, question) {
    const answer = await fetch(service + path, {
        method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(question),
    });
    const text = await answer.text();
    if (!answer.ok) throw new NonRetryableError(`robots serve: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
}

async function end(request, how) {
    const { turn } = request.userData;
    if (!turn) return;
    delete request.userData.turn;
    await ask(`/v1/turns/${turn}`, how);
}

const crawler = new HttpCrawler({
    useSessionPool: false, // it would take a refusal for a block
    maxRequestRetries: 0,
    proxyConfiguration: process.env.WEB ? new ProxyConfiguration({ proxyUrls: [process.env.WEB] }) : undefined,
    ignoreHttpErrorStatusCodes: [404, 429, 500, 502, 503],
    preNavigationHooks: [async ({ request }, got) => {
        got.followRedirect = false;
        got.useHeaderGenerator = false; // it would pass for a browser
        got.headers = { 'User-Agent': `${agent}/1.0 (+https://example.com/bot)` };
        for (;;) {
            const turn = await ask('/v1/turns', { url: request.url, agent, wait: '0s' });
            if (!turn.allowed) throw new NonRetryableError(`robots.txt: ${turn.decision.rule ?? turn.decision.reason}`);
            if (turn.turn) {
                request.userData.turn = turn.turn;
                return;
            }
            await sleep(turn.retry_after * 1000);
        }
    }],
    async requestHandler({ request, response, body }) {
        await end(request, { status: response.statusCode, retry_after: response.headers['retry-after'] ?? '' });
        console.log('fetched', request.url, response.statusCode);
        const links = [...body.toString().matchAll(/href="(.*?)"/g)].map((match) => match[1]);
        if (response.headers.location) links.push(response.headers.location);
        await crawler.addRequests(links.map((link) => new URL(link, request.url).href));
    },
    async failedRequestHandler({ request }, error) {
        await end(request, { status: 0 });
        console.log(error.message.startsWith('robots.txt') ? 'refused' : 'failed', request.url, error.message);
    },
}, new Configuration({ persistStorage: false }));

await crawler.run(start);
