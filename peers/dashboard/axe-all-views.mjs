#!/usr/bin/env node
// Has axe-core look at every view, light and dark, wide and on a phone, and at what opens above them.
//   COCODE_DASHBOARD_SERVER   a server that is ready, to look at, too
//   COCODE_DASHBOARD_TOOL     a tool of it
//   COCODE_DASHBOARD_ARGUMENTS   arguments to call it with, as JSON, if its outcome is to be looked at, too
//   COCODE_DASHBOARD_ASKS     a tool of it that a rule asks about, with arguments: its call waits in the inbox meanwhile
import { readFileSync } from 'node:fs';

import { installed } from './installed.mjs';
import { PHONE, WIDE, base, must, placeOfTool, runTool, say, scenario, setting, visit } from './drive.mjs';

const server = setting('SERVER', '');
const tool = setting('TOOL', '');
const args = setting('ARGUMENTS', '');
const asks = JSON.parse(setting('ASKS', 'null'));
const axe = readFileSync(installed.resolve('axe-core/axe.min.js'), 'utf8');

const VIEWS = [
  ['servers', 'Servers'],
  ['add-server', 'Add a server'],
  ['calls', 'Calls'],
  ['tools?q=read%20a%20file', 'Tools'],
  ['inbox', 'Inbox'],
  ['trust', 'Trust'],
  ['tokens', 'Tokens'],
  ['budget', 'Budget'],
  ...(server
    ? ['overview', 'tools', 'resources', 'prompts', 'logs'].map((tab) => [
        `servers/${encodeURIComponent(server)}/${tab}`,
        server,
      ])
    : []),
  ...(tool ? [[placeOfTool(server, tool), server]] : []),
];

async function look(page, where) {
  await page.locator('main .loading').first().waitFor({ state: 'detached' });
  // What is still moving has half of its colours.
  await page.evaluate(() =>
    Promise.all(
      document
        .getAnimations()
        .map((one) => (one.effect?.getTiming().iterations === Infinity ? null : one.finished)),
    ),
  );
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return violations.map(({ id, impact, help, nodes }) => ({
      id,
      impact,
      help,
      nodes: nodes
        .slice(0, 5)
        .map((node) => `${node.html.slice(0, 160)} ${node.any.map((one) => one.message).join(' ')}`),
    }));
  });
  const grave = found.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  must(grave.length === 0, `${where}: ${JSON.stringify(grave, null, 1)}`);
  say('looked', { where, lesser: found.map(({ id, impact }) => `${id} (${impact})`) });
}

/** A tool that was called, as it is afterwards. */
async function lookAtOutcome(page, how) {
  await visit(page, placeOfTool(server, tool), server);
  await page.locator('form.try').waitFor();
  await runTool(page, JSON.parse(args));
  await page.locator('.run:is([data-state="ok"], [data-state="tool-error"])').waitFor();
  await look(page, `${how}: outcome`);
}

/** Leaves a call in the inbox. */
async function ask(page) {
  const [name, given] = asks;
  await visit(page, placeOfTool(server, name), server);
  await runTool(page, given);
  await page.getByRole('link', { name: 'Look at it in the inbox' }).waitFor();
}

/** What opens above the views. */
async function lookAbove(page, how) {
  await visit(page, 'servers', 'Servers');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await look(page, `${how}: help`);
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.getByRole('combobox').fill('read file');
  await page
    .getByRole('status')
    .filter({ hasText: /result|Nothing/ })
    .waitFor();
  await look(page, `${how}: search`);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Theme' }).click();
  await page.getByRole('menu').waitFor();
  await look(page, `${how}: menu`);
  await page.keyboard.press('Escape');
}

await scenario(
  async ({ page, context }) => {
    await page.goto(base.href);
    await page.getByLabel('One-time code').waitFor();
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await look(page, `${colorScheme}: sign-in`);
    }
    await page.getByLabel('One-time code').fill(setting('CODE'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('[data-feed="live"]').waitFor();
    if (asks) await ask(page);
    for (const [size, viewport] of [
      ['wide', WIDE],
      ['phone', PHONE],
    ]) {
      for (const colorScheme of ['light', 'dark']) {
        await page.setViewportSize(viewport);
        await page.emulateMedia({ colorScheme });
        for (const [place, heading] of VIEWS) {
          await visit(page, place, heading);
          await look(page, `${colorScheme} ${size}: ${decodeURIComponent(place)}`);
          const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          must(over <= 0, `${place} is ${over} pixels too wide for ${viewport.width}`);
        }
        await lookAbove(page, `${colorScheme} ${size}`);
        if (args) await lookAtOutcome(page, `${colorScheme} ${size}`);
      }
    }
    must(context.pages().length <= 2, 'a tab was opened by itself');
  },
  { isSignedIn: false },
);
