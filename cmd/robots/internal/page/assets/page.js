// Without this script the page is a form that the server answers. With it the same answer takes
// the place of the last one, and that about a pasted file follows what is typed.
'use strict';

const form = document.querySelector('form');
const answer = document.getElementById('answer');
const status = document.getElementById('status');
const pasted = form.method === 'post';
let shown = location.search; // the question whose answer is on the page
let under; // the request under way

// ask fetches the answer to the form. by is the button that was pressed, and undefined while typing.
async function ask(by) {
	under?.abort();
	const mine = under = new AbortController();
	const question = new URLSearchParams(new FormData(form, by));
	answer.setAttribute('aria-busy', 'true');
	if (by) say('Asking …');
	try {
		const response = pasted
			? await fetch('/', {method: 'POST', body: question, signal: mine.signal})
			: await fetch('/?' + question, {signal: mine.signal});
		const text = await response.text();
		if (mine.signal.aborted) return;
		if (!response.headers.get('Content-Type')?.startsWith('text/html')) throw new Error(reason(text));
		show(new DOMParser().parseFromString(text, 'text/html'), question, by);
	} catch (e) {
		if (mine.signal.aborted) return;
		fail(e.message);
	}
	if (under === mine) answer.removeAttribute('aria-busy');
}

// show puts the answer of another document onto this page.
function show(page, question, by) {
	const had = answer.contains(document.activeElement) && document.activeElement;
	answer.replaceChildren(...document.adoptNode(page.getElementById('answer')).childNodes);
	if (had) refocus(had);
	document.title = page.title;
	say(page.getElementById('status').textContent);
	copyable();
	const link = document.getElementById('link');
	for (const name of ['crawler', 'agent', 'as']) form.elements[name].value = page.getElementById(name).value;
	if (!pasted) { // a file of someone's own has no place in the history
		shown = link ? link.search : '?' + question;
		if (shown !== location.search || location.hash) history.pushState(null, '', '/' + shown);
	}
	if (by && answer.getBoundingClientRect().top > innerHeight * .3) answer.scrollIntoView();
}

// refocus puts the focus where it was: onto what is the same in the new answer, or else onto its beginning.
function refocus(had) {
	const same = e => ['id', 'name', 'value', 'href', 'textContent'].every(of => e[of] === had[of]);
	const now = [...answer.getElementsByTagName(had.tagName)].find(same) ?? document.getElementById('said');
	const folded = now?.closest('details');
	if (folded && had.closest('details')?.open) folded.open = true;
	now?.focus({preventScroll: true});
}

// fail says why there is no answer.
function fail(why) {
	const p = document.createElement('p');
	p.className = 'problem';
	p.textContent = 'There is no answer: ' + why;
	answer.replaceChildren(p);
	say(p.textContent);
}

// reason is that of a problem document (RFC 9457).
function reason(text) {
	try { return JSON.parse(text).detail; } catch { return text; }
}

// say has a screen reader say what is new.
function say(text) {
	if (status.textContent !== text) status.textContent = text;
}

// copyable adds a button beside the link.
function copyable() {
	const link = document.getElementById('link');
	if (!link || !navigator.clipboard) return;
	const button = document.createElement('button');
	button.type = 'button';
	button.className = 'quiet';
	button.textContent = 'Copy link';
	button.addEventListener('click', async () => {
		try {
			await navigator.clipboard.writeText(link.href);
			say('Copied');
			button.textContent = 'Copied';
		} catch {
			say('The browser does not let the page copy');
		}
	});
	link.after(button);
}

form.addEventListener('submit', event => {
	const by = event.submitter;
	if (by?.name === 'edit' || by?.hasAttribute('formaction')) return; // another page, or a file
	event.preventDefault();
	ask(by);
});

// Ctrl+Enter asks from where Enter begins a line.
form.addEventListener('keydown', event => {
	if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

if (pasted) {
	const largest = 64 << 10; // a longer file is asked when the button says so
	let soon;
	form.addEventListener('input', () => {
		clearTimeout(soon);
		const text = form.elements.robots.value;
		if (text.trim() && text.length < largest) soon = setTimeout(ask, 250);
	});
}

// What is in the form goes along to its other kind.
for (const link of document.querySelectorAll('nav a')) {
	link.addEventListener('click', () => {
		const to = new URL(link.href);
		for (const name of ['urls', 'crawler', 'agent', 'as']) {
			const value = form.elements[name].value;
			if (value) to.searchParams.set(name, value);
		}
		link.href = to;
	});
}

// A step in the history to another question is a new page; one to a line is not.
addEventListener('popstate', () => {
	if (location.search !== shown) location.reload();
});

copyable();

// What is chosen counts, not what was typed before.
form.elements.crawler.addEventListener('change', () => { form.elements.agent.value = ''; });
