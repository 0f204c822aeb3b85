#!/usr/bin/env node
// Makes more calls that wait for the inbox than a browser has connections, in one tab and in three, and answers all of
// them. The tabs share one stream of events, which goes on when the tab is closed that has opened it.
//   COCODE_DASHBOARD_SERVER   a server of which every call has to be allowed
//   COCODE_DASHBOARD_TOOLS    five of its tools, as JSON: [[NAME, ARGUMENTS], …]
//   COCODE_DASHBOARD_LOCKS    `no` for a browser whose tabs cannot agree on anything, as over plain http; then there is one
import { base, must, placeOfTool, runTool, say, scenario, setting, signIn, visit } from './drive.mjs';

const server = setting('SERVER');
const hasLocks = setting('LOCKS', 'yes') !== 'no';
const tools = JSON.parse(setting('TOOLS'));

/** How many connections browsers have to one host. */
const CONNECTIONS = 6;

async function call(page, [tool, args]) {
  await visit(page, placeOfTool(server, tool), server);
  await runTool(page, args);
  await page.locator('.run').waitFor();
}

/** Allows so many calls in the inbox of a page, one after the other. */
async function allow(page, number) {
  await visit(page, 'inbox', 'Inbox');
  for (let done = 0; done < number; done += 1) {
    const card = page.locator('li.consent').first();
    const head = await card.getByRole('heading', { level: 2 }).innerText();
    const one = page.locator('li.consent').filter({ hasText: head });
    await one.getByRole('button', { name: /^Allow/ }).click();
    await one.waitFor({ state: 'detached' });
  }
}

async function isOk(page, [tool]) {
  await visit(page, placeOfTool(server, tool), server);
  await page.locator('.run[data-state="ok"]').waitFor();
}

/** A second and a third tab of the same browser, which the cookie lets in. */
async function anotherTab(context) {
  const page = await context.newPage();
  await page.goto(base.href);
  await page.locator('[data-feed="live"]').waitFor();
  return page;
}

/** Five calls in one tab, the last of which is taken back once. */
async function inOneTab(page) {
  for (const tool of tools) await call(page, tool);
  const last = page.locator('.run[data-state="waiting"]');
  await last.waitFor();
  say('the last call waits for its turn', { words: (await last.innerText()).replace(/\s+/g, ' ') });
  await last.getByRole('button', { name: 'Cancel' }).click();
  await page.locator('.run[data-state="cancelled"]').waitFor();
  await call(page, tools.at(-1));
  say('taken back, and made again');
  await allow(page, tools.length);
  for (const tool of tools) await isOk(page, tool);
  say('one tab: all are answered');
}

/** The same in three tabs, with one stream of events for all of them. */
async function inThreeTabs(page, context) {
  const streams = [];
  context.on('request', (request) => {
    if (request.url().endsWith('/api/v1/events')) streams.push(request);
  });
  const tabs = [page, await anotherTab(context), await anotherTab(context)];
  const shares = tabs.map((_, at) => tools.filter((_, index) => index % tabs.length === at));
  for (const [at, tab] of tabs.entries()) for (const tool of shares[at]) await call(tab, tool);
  await allow(tabs[2], tools.length);
  for (const [at, tab] of tabs.entries()) for (const tool of shares[at]) await isOk(tab, tool);
  must(streams.length === 0, `more streams of events were opened: ${streams.length}`);
  say('three tabs: all are answered');

  await page.close();
  await call(tabs[1], tools[0]);
  await allow(tabs[2], 1);
  await isOk(tabs[1], tools[0]);
  must(streams.length === 1, `${streams.length} streams were opened in place of the first`);
  must(
    streams[0].headers()['last-event-id'] !== undefined,
    'the new one does not go on where the old one ended',
  );
  say('another tab listens when the first is closed');

  // As if the tab that listens had been put to sleep for minutes.
  await tabs[2].evaluate(() => {
    const now = Date.now() + 600_000;
    Date.now = () => now;
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await call(tabs[1], tools[1]);
  await allow(tabs[2], 1);
  await isOk(tabs[1], tools[1]);
  must(streams.length === 2, `${streams.length} streams were opened in place of one that sleeps`);
  say('and when it sleeps');
}

await scenario(
  async ({ page, context }) => {
    must(tools.length >= CONNECTIONS - 1, 'too few calls to use up all connections');
    if (!hasLocks) {
      await page.addInitScript(() => Object.defineProperty(navigator, 'locks', { value: undefined }));
    }
    await signIn(page);
    await inOneTab(page);
    if (hasLocks) await inThreeTabs(page, context);
  },
  { isSignedIn: false },
);
