#!/usr/bin/env node
// A user with a real browser: Debian's Chromium, without a window. Goes to an authorization URL,
// signs in, clicks a button of the consent page, and ends at the page that the client serves.
//
//   browse.mjs URL [allow|deny] [--screenshot=FILE]
//
// Prints {url_without_query, status, title, heading, console_errors, csp_violations} of that page.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import './installed.mjs';
import { USER } from './pages.mjs';

const { chromium } = await import('playwright-core');

const PATIENCE_MS = 30_000;
const BROWSER = '/usr/bin/chromium';
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Whatever the browser would like to ask of the world, it finds nobody.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE [::1]',
  '--no-proxy-server',
];

const [start, outcome = 'allow'] = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const screenshot = process.argv
  .find((word) => word.startsWith('--screenshot='))
  ?.slice('--screenshot='.length);
if (!start || !['allow', 'deny'].includes(outcome)) {
  throw new Error('usage: browse.mjs URL [allow|deny] [--screenshot=FILE]');
}

// What the page has to complain about, from the moment it is shown.
async function listen(page) {
  const complaints = { console_errors: [], csp_violations: [] };
  await page.exposeBinding('tellViolation', (source, violation) => {
    complaints.csp_violations.push(violation);
  });
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      globalThis.tellViolation(`${violatedDirective}: ${blockedURI}`);
    });
  });
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.console_errors.push(message.text());
  });
  page.on('pageerror', (error) => complaints.console_errors.push(error.message));
  page.on('framenavigated', (frame) => {
    if (frame !== page.mainFrame()) return;
    complaints.console_errors = [];
    complaints.csp_violations = [];
  });
  return complaints;
}

async function browse(context) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const complaints = await listen(page);
  const issuer = new URL(start).origin;
  let status = null;
  page.on('response', (response) => {
    const ofPage = response.request().isNavigationRequest() && response.frame() === page.mainFrame();
    if (ofPage) status = response.status();
  });
  const isBack = (url) => url.protocol === 'http:' && url.origin !== issuer;
  await page.goto(start);
  if (!isBack(new URL(page.url()))) {
    if ((await page.title()) !== 'Sign in') {
      throw new Error(`this is not the login page: ${await page.locator('body').innerText()}`);
    }
    await page.getByLabel('User').fill(USER.name);
    await page.getByLabel('Password').fill(USER.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    const decision = outcome === 'allow' ? 'Allow' : 'Deny';
    await page.getByRole('button', { name: decision }).click();
    await page.waitForURL(isBack);
  }
  await page.waitForLoadState('load');
  const heading = page.getByRole('heading', { level: 1 });
  const url = new URL(page.url());
  const report = {
    url_without_query: url.origin + url.pathname,
    status,
    title: await page.title(),
    heading: (await heading.count()) > 0 ? (await heading.first().innerText()).trim() : null,
    ...complaints,
  };
  if (screenshot) await page.screenshot({ path: screenshot });
  return report;
}

const home = mkdtempSync(join(tmpdir(), 'cocode-browser-'));
try {
  const context = await chromium.launchPersistentContext(join(home, 'profile'), {
    executablePath: BROWSER,
    args: FLAGS,
    headless: true,
    chromiumSandbox: false,
    env: { PATH: process.env.PATH, HOME: home, TMPDIR: home },
    timeout: PATIENCE_MS,
  });
  try {
    process.stdout.write(`${JSON.stringify(await browse(context))}\n`);
  } finally {
    await context.close();
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
