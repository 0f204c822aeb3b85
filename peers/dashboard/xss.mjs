#!/usr/bin/env node
// Looks at everything that a hostile server says, everywhere that it is shown, and sees that it stays text.
// The strings of the server should be those of payloads.json, which set `window.__xss` if anything obeys them.
//   COCODE_DASHBOARD_SERVER      the hostile server
//   COCODE_DASHBOARD_TOOLS          tools of it that give hostile results, in turn, between spaces
//   COCODE_DASHBOARD_ASKING_TOOLS   tools of it that ask for something in a hostile way
//   COCODE_DASHBOARD_OTHER_SERVERS  servers of which there is not much to see but how they are
//   COCODE_DASHBOARD_LOGIN          a server whose sign-in leads to hostile places
import { must, placeOfTool, runTool, say, scenario, setting, visit } from './drive.mjs';

const server = setting('SERVER');
const words = (name) => setting(name, '').split(' ').filter(Boolean);

const MAX_TOOLS = 25;

/** What about the page should not be there: elements, attributes, links and letters that only a server could want. */
function audit() {
  const offenders = [];
  const elements = new Set(
    (
      'a article aside b bdi body br button caption code datalist dd details dialog div dl dt fieldset figcaption figure ' +
      'footer form h1 h2 h3 h4 head header html img input kbd label legend li link main mark meta nav noscript ol option p ' +
      'pre progress script section select span strong summary table tbody td textarea tfoot th thead time title tr ul ' +
      'svg g path circle rect line text defs clipPath'
    ).split(' '),
  );
  const scripts = document.querySelectorAll('script');
  if (scripts.length !== 2) offenders.push(`${scripts.length} scripts`);
  for (const element of document.querySelectorAll('*')) {
    if (!elements.has(element.localName)) offenders.push(`<${element.localName}>`);
    for (const { name, value } of element.attributes) {
      if (/^on/i.test(name) || name === 'srcdoc') offenders.push(`<${element.localName} ${name}>`);
      if (name === 'href' && !/^(#|https?:|(styles\/)?\w+\.(css|svg)$)/.test(value))
        offenders.push(`href ${value}`);
      if (name === 'src' && !/^((app|theme)\.js$|data:image\/(png|jpeg|gif|webp);base64,)/.test(value))
        offenders.push(`src ${value}`);
    }
    if (element.localName === 'a' && element.target === '_blank' && !/\bnoopener\b/.test(element.rel))
      offenders.push('opener');
  }
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    if (walker.currentNode.parentElement.closest('script, noscript')) continue;
    const unseen =
      /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/.exec(
        walker.currentNode.data,
      );
    if (unseen)
      offenders.push(
        `U+${unseen[0].codePointAt(0).toString(16)} in “${walker.currentNode.data.slice(0, 60)}”`,
      );
  }
  if (globalThis.__xss !== undefined) offenders.push('a script of the server ran');
  if (document.styleSheets.length !== document.querySelectorAll('link[rel="stylesheet"]').length)
    offenders.push('a style of the server');
  return offenders;
}

async function look(page, where) {
  const offenders = await page.evaluate(audit);
  must(offenders.length === 0, `${where}: ${offenders.slice(0, 10).join('; ')}`);
  say('looked', { where, letters: (await page.locator('body').innerText()).length });
}

/** Waits until nothing is loading any more, and opens what is folded. */
async function settle(page) {
  await page.locator('main .loading').first().waitFor({ state: 'detached' });
  await page.evaluate(() => {
    for (const details of document.querySelectorAll('details')) details.open = true;
    for (const more of document.querySelectorAll('button.more')) more.click();
  });
  await page.locator('main .loading').first().waitFor({ state: 'detached' });
}

await scenario(async ({ page }) => {
  for (const [place, heading] of [
    ['servers', 'Servers'],
    ['calls', 'Calls'],
    ['tools', 'Tools'],
    ['inbox', 'Inbox'],
    ['trust', 'Trust'],
    ['tokens', 'Tokens'],
    ['budget', 'Budget'],
  ]) {
    await visit(page, place, heading);
    await settle(page);
    await look(page, place);
  }
  for (const tab of ['overview', 'tools', 'resources', 'prompts', 'logs']) {
    await visit(page, `servers/${encodeURIComponent(server)}/${tab}`, server);
    await settle(page);
    await look(page, `${server}, ${tab}`);
  }
  await visit(page, `servers/${encodeURIComponent(server)}/tools`, server);
  await settle(page);
  const places = await page
    .locator('a.tool-row')
    .evaluateAll((rows) => rows.map((row) => row.getAttribute('href').slice(2)));
  for (const place of places.slice(0, MAX_TOOLS)) {
    await visit(page, place, server);
    await page.locator('form.try').waitFor();
    await settle(page);
    await look(page, decodeURIComponent(place));
  }
  await visit(page, `servers/${encodeURIComponent(server)}/resources`, server);
  await settle(page);
  if ((await page.getByRole('button', { name: /^Read / }).count()) > 0) {
    await page
      .getByRole('button', { name: /^Read / })
      .first()
      .click();
    await page.locator('dialog .loading').waitFor({ state: 'detached' });
    await look(page, 'a resource that was read');
    await page.keyboard.press('Escape');
  }
  await visit(page, `servers/${encodeURIComponent(server)}/prompts`, server);
  await settle(page);
  if ((await page.getByRole('button', { name: 'Get prompt' }).count()) > 0) {
    await page.getByRole('button', { name: 'Get prompt' }).first().click();
    await page.locator('main .loading').waitFor({ state: 'detached' });
    await look(page, 'a prompt that was got');
  }
  for (const [index, tool] of words('TOOLS').entries()) {
    await visit(page, placeOfTool(server, tool), server);
    await page.locator('form.try').waitFor();
    await runTool(page, {});
    await page.locator('.run:not([data-state="running"])').waitFor();
    await settle(page);
    await look(page, `result ${index + 1}`);
    await visit(page, 'servers', 'Servers');
  }
  for (const tool of words('ASKING_TOOLS')) {
    await visit(page, placeOfTool(server, tool), server);
    await runTool(page, {});
    await page.getByRole('link', { name: 'Answer it in the inbox' }).waitFor();
    await visit(page, 'inbox', 'Inbox');
    const card = page.locator('li.question').filter({ hasText: server }).first();
    await card.waitFor();
    await settle(page);
    await look(page, 'a question');
    await card.getByRole('button', { name: 'Decline' }).click();
    await card.waitFor({ state: 'detached' });
  }
  for (const other of words('OTHER_SERVERS')) {
    for (const tab of ['overview', 'logs']) {
      await visit(page, `servers/${encodeURIComponent(other)}/${tab}`, other);
      await settle(page);
      await look(page, `${other}, ${tab}`);
    }
  }
  for (const other of words('LOGIN')) {
    await visit(page, 'servers', 'Servers');
    await page.getByRole('button', { name: `Log in: ${other}` }).click();
    const dialog = page.getByRole('dialog', { name: `Log in to ${other}` });
    // It is offered nowhere to go, and told why.
    await dialog.getByRole('button', { name: 'Try again' }).waitFor();
    await look(page, 'a sign-in');
    must((await dialog.getByRole('link').count()) === 0, 'there is a link to follow');
    await page.keyboard.press('Escape');
  }
  // What was called, and what was said meanwhile.
  await visit(page, 'calls', 'Calls');
  await settle(page);
  await look(page, 'calls that were made');
  await visit(page, `servers/${encodeURIComponent(server)}/logs`, server);
  await settle(page);
  must((await page.locator('main').innerText()).includes('attacker.example'), 'the log is empty');
  await look(page, 'the log of what was said');
  await visit(page, 'servers', 'Servers');
  await page.keyboard.press('/');
  await page.getByRole('combobox').fill('img script xss');
  await page
    .getByRole('status')
    .filter({ hasText: /result|Nothing/ })
    .waitFor();
  await look(page, 'the search');
});
