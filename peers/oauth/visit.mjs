#!/usr/bin/env node
// A user without a browser: follows an authorization URL through the pages of server.mjs, fills in
// their forms, and ends at the address that the client listens at.
//
//   visit.mjs URL [allow|deny] [--stay]
//
// Prints {url_without_query, status, title, heading} of the last page. With --stay it does not go
// to the client, and prints {redirect}, the address that a user would copy.
import { USER } from './pages.mjs';

const HOPS = 20;

const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const stay = process.argv.includes('--stay');
const [start, outcome = 'allow'] = words;
if (!start || !['allow', 'deny'].includes(outcome)) {
  throw new Error('usage: visit.mjs URL [allow|deny] [--stay]');
}

const cookies = new Map();

async function request(url, form) {
  const response = await fetch(url, {
    method: form ? 'POST' : 'GET',
    body: form && new URLSearchParams(form),
    headers: {
      accept: 'text/html',
      cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
    },
    redirect: 'manual',
  });
  for (const cookie of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie);
    if (value === '') cookies.delete(name);
    else cookies.set(name, value);
  }
  return response;
}

const inside = (html, tag) => new RegExp(`<${tag}[^>]*>([^<]*)</${tag}>`).exec(html)?.[1].trim();

// What a user would enter here.
function fill(html) {
  if (html.includes('name="password"')) return { user: USER.name, password: USER.password };
  if (html.includes('name="decision"')) return { decision: outcome };
  throw new Error(`there is nothing to do at this page: ${html}`);
}

// Where the client listens: the way back from the authorization server.
const issuer = new URL(start).origin;
let url = new URL(start);
let form;
for (let hop = 0; url.origin === issuer; hop += 1) {
  if (hop === HOPS) throw new Error('the pages go in circles');
  const response = await request(url, form);
  const location = response.headers.get('location');
  if (location) {
    url = new URL(location, url);
    form = undefined;
    await response.body?.cancel();
    continue;
  }
  const html = await response.text();
  form = fill(html);
  url = new URL(/<form[^>]* action="([^"]+)"/.exec(html)[1], url);
}
const report = { redirect: url.href };
if (!stay) {
  // The client is somebody else, who must not see the cookies.
  const response = await fetch(url, { headers: { accept: 'text/html' } });
  const html = await response.text();
  const last = new URL(response.url);
  delete report.redirect;
  Object.assign(report, {
    url_without_query: last.origin + last.pathname,
    status: response.status,
    title: inside(html, 'title') ?? null,
    heading: inside(html, 'h1') ?? null,
  });
}
process.stdout.write(`${JSON.stringify(report)}\n`);
