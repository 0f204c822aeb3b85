#!/usr/bin/env node
// Adds a server, sees it connect, stops it and starts it again.
//   COCODE_DASHBOARD_NAME      its name (`added`)
//   COCODE_DASHBOARD_COMMAND   its command line, or else
//   COCODE_DASHBOARD_ADDRESS   its address
import { must, rowOf, say, scenario, setting, visit, waitForState } from './drive.mjs';

const name = setting('NAME', 'added');
const command = setting('COMMAND', '');
const address = command ? '' : setting('ADDRESS');

async function choose(page, action) {
  await page.getByRole('button', { name: `Actions for ${name}` }).click();
  await page.getByRole('menuitem', { name: action }).click();
}

await scenario(async ({ page }) => {
  await page.getByRole('link', { name: 'Add server' }).click();
  const form = page.locator('form.add-form');
  if (address) await form.getByRole('button', { name: 'Address' }).click();
  await form.getByLabel('Name', { exact: false }).first().fill(name);
  if (command) await form.getByLabel('Command').fill(command);
  else await form.getByLabel('URL').fill(address);
  await form.getByRole('button', { name: 'Add server' }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
  say('added', { name });

  await waitForState(page, 'ready');
  say('connected');

  await page.getByRole('tab', { name: /^Tools/ }).click();
  const tools = page.locator('a.tool-row');
  await tools.first().waitFor();
  say('tools are shown', {
    tools: await tools.count(),
    cost: await page.locator('.tools-side p').innerText(),
  });

  await choose(page, 'Disconnect');
  await waitForState(page, 'stopped');
  say('disconnected');
  await page.getByRole('button', { name: `Connect: ${name}` }).click();
  await waitForState(page, 'ready');
  say('connected again');

  await visit(page, 'servers', 'Servers');
  const row = rowOf(page, name);
  must((await row.getAttribute('data-state')) === 'ready', 'the list does not say that the server is ready');
  say('listed', { words: (await row.innerText()).replace(/\s+/g, ' ') });

  await form.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Add server' }).click();
  await page.locator('form.add-form').getByLabel('Name', { exact: false }).first().fill('');
  await page.locator('form.add-form').getByRole('button', { name: 'Add server' }).click();
  await page.getByRole('alert').filter({ hasText: 'empty' }).waitFor();
  say('what is missing is said');
});
