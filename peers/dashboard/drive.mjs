// A person with a real browser at the dashboard of a gateway: Debian's Chromium, without a window.
//
// Every scenario is a script of its own that is told by the environment where to go:
//   COCODE_DASHBOARD_URL    the address of the gateway, as http://127.0.0.1:7777/
//   COCODE_DASHBOARD_CODE   a one-time code to sign in with
// and what it needs besides; its first lines say what. It prints one line of JSON for each step, { "step", "ok", … }, and
// a last one, { "step": "end", "ok", "console_errors", "csp_violations", "foreign_requests" }. It ends with 0 only if
// every step was taken and the page had nothing to complain about.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { installed } from './installed.mjs';

const { chromium } = installed('playwright-core');

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

export const WIDE = { width: 1280, height: 860 };
export const PHONE = { width: 360, height: 740 };

/** What the environment says; without a fallback it has to. */
export function setting(name, fallback) {
  const value = process.env[`COCODE_DASHBOARD_${name}`] ?? fallback;
  if (value === undefined) throw new Error(`COCODE_DASHBOARD_${name} is not set`);
  return value;
}

export const base = new URL(setting('URL'));

const complaints = { console_errors: [], csp_violations: [], foreign_requests: [], dialogs: [] };

/** Says what was done, as one line of JSON. */
export function say(step, facts = {}) {
  process.stdout.write(`${JSON.stringify({ step, ok: true, ...facts })}\n`);
}

/** Ends the scenario unless something holds. */
export function must(condition, words) {
  if (!condition) throw new Error(words);
}

/** Hears everything that a page of the dashboard complains about, and whom it talks to. */
async function guard(context) {
  await context.exposeBinding('tellViolation', (source, violation) => {
    if (isOurs(source.page.url())) complaints.csp_violations.push(violation);
  });
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sourceFile }) => {
      globalThis.tellViolation(`${violatedDirective}: ${blockedURI} ${sourceFile}`);
    });
  });
  context.on('page', (page) => {
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('console', (message) => {
      if (message.type() === 'error' && isOurs(page.url())) complaints.console_errors.push(message.text());
    });
    page.on('pageerror', (error) => complaints.console_errors.push(error.stack ?? error.message));
    page.on('dialog', (dialog) => {
      complaints.dialogs.push(dialog.message());
      dialog.dismiss();
    });
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      const isWeb = protocol === 'http:' || protocol === 'https:';
      if (isWeb && isOurs(page.url()) && origin !== base.origin && !request.isNavigationRequest()) {
        complaints.foreign_requests.push(request.url());
      }
    });
  });
}

function isOurs(address) {
  return URL.canParse(address) && new URL(address).origin === base.origin;
}

/** Takes back complaints that a step provokes on purpose. */
export function forgive(pattern) {
  complaints.console_errors = complaints.console_errors.filter((text) => !pattern.test(text));
}

/** Opens the dashboard and signs in with the code. */
export async function signIn(page) {
  await page.goto(base.href);
  await page.getByLabel('One-time code').fill(setting('CODE'));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Servers', level: 1 }).waitFor();
  await page.locator('[data-feed="live"]').waitFor();
  say('signed in');
}

/** Goes to a view by its address, and waits for its heading. */
export async function visit(page, place, heading) {
  await page.evaluate(async (hash) => {
    if (location.hash === hash) return;
    // The page hears of it a little later, and only then shows something else.
    const heard = new Promise((resolve) =>
      addEventListener('hashchange', () => setTimeout(resolve), { once: true }),
    );
    location.hash = hash;
    await heard;
  }, `#/${place}`);
  await page.getByRole('heading', { level: 1, name: heading }).waitFor();
}

/** The row of a server in the list. */
export const rowOf = (page, name) =>
  page.locator('li.server').filter({ has: page.getByRole('link', { name, exact: true }) });

/** Waits until the page of a server says that it is in one of these states. */
export async function waitForState(page, ...states) {
  await page
    .locator(states.map((state) => `main [data-state="${state}"]`).join(', '))
    .first()
    .waitFor();
}

/** The place of a tool, below `#/`. */
export const placeOfTool = (server, tool) =>
  `servers/${encodeURIComponent(server)}/tools/${encodeURIComponent(tool)}`;

/** Writes the arguments of the tool that is shown, as JSON, and runs it. */
export async function runTool(page, args) {
  const form = page.locator('form.try');
  await form.waitFor();
  if (await form.getByRole('button', { name: 'JSON', exact: true }).isVisible()) {
    await form.getByRole('button', { name: 'JSON', exact: true }).click();
  }
  await form.getByLabel('Arguments as JSON').fill(JSON.stringify(args));
  await form.getByRole('button', { name: 'Run' }).click();
}

/** Fills in a field of a generated form by the name that it has in the schema. */
export async function fillField(scope, name, value) {
  const control = scope.locator(`[name="${name}"]`);
  const kind = await control.evaluate((element) => `${element.localName} ${element.type}`);
  if (kind.startsWith('select')) await control.selectOption({ label: String(value) });
  else if (kind.endsWith('checkbox')) await control.setChecked(value);
  else await control.fill(String(value));
}

/** Runs a scenario in a fresh browser, signed in unless told, and ends this process. */
export async function scenario(act, { viewport = WIDE, isSignedIn = true, ...options } = {}) {
  const home = mkdtempSync(join(tmpdir(), 'cocode-dashboard-'));
  let context = null;
  let failure = null;
  try {
    context = await chromium.launchPersistentContext(join(home, 'profile'), {
      executablePath: BROWSER,
      args: FLAGS,
      headless: true,
      chromiumSandbox: false,
      env: { PATH: process.env.PATH, HOME: home, TMPDIR: home },
      timeout: PATIENCE_MS,
      viewport,
      colorScheme: 'light',
      permissions: ['clipboard-read', 'clipboard-write'],
      ...options,
    });
    await guard(context);
    const page = await context.newPage();
    if (isSignedIn) await signIn(page);
    await act({ page, context });
  } catch (error) {
    failure = error.stack ?? String(error);
    await picture(context);
  } finally {
    await context?.close();
    rmSync(home, { recursive: true, force: true });
  }
  const isClean = Object.values(complaints).every((list) => list.length === 0);
  const ok = failure === null && isClean;
  process.stdout.write(
    `${JSON.stringify({ step: 'end', ok, ...(failure && { failure }), ...complaints })}\n`,
  );
  process.exitCode = ok ? 0 : 1;
}

/** What there was to see when something failed, if COCODE_DASHBOARD_FAILURES names a directory for it. */
async function picture(context) {
  const directory = setting('FAILURES', '');
  if (!directory || !context) return;
  for (const [index, page] of context.pages().entries()) {
    await page.screenshot({ path: join(directory, `failure-${process.pid}-${index}.png`) }).catch(() => {});
  }
}
