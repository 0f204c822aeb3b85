#!/usr/bin/env node
// Takes pictures of the views, for the documentation and for those who want to see them.
//   COCODE_DASHBOARD_DIRECTORY   where the pictures go
//   COCODE_DASHBOARD_SERVER      a server that is ready, to look at, too
//   COCODE_DASHBOARD_TOOL        a tool of it
//   COCODE_DASHBOARD_QUERY       what to search for (`read a file`)
//   COCODE_DASHBOARD_VIEWS       which views only, separated by commas
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { PHONE, WIDE, placeOfTool, say, scenario, setting, visit } from './drive.mjs';

const directory = setting('DIRECTORY');
const server = setting('SERVER', '');
const tool = setting('TOOL', '');
const query = setting('QUERY', 'read a file');
const only = setting('VIEWS', '').split(',').filter(Boolean);

const VIEWS = [
  ['servers', 'servers', 'Servers'],
  ['calls', 'calls', 'Calls'],
  ['tools', `tools?q=${encodeURIComponent(query)}`, 'Tools'],
  ['inbox', 'inbox', 'Inbox'],
  ['trust', 'trust', 'Trust'],
  ['tokens', 'tokens', 'Tokens'],
  ['budget', 'budget', 'Budget'],
  ['add-server', 'add-server', 'Add a server'],
  ...(server ? [['server', `servers/${encodeURIComponent(server)}`, server]] : []),
  ...(tool ? [['tool', placeOfTool(server, tool), server]] : []),
].filter(([name]) => only.length === 0 || only.includes(name));

const LOOKS = [
  ['light', WIDE, 'light'],
  ['dark', WIDE, 'dark'],
  ['phone', PHONE, 'light'],
];

await scenario(async ({ page }) => {
  mkdirSync(directory, { recursive: true });
  for (const [look, viewport, colorScheme] of LOOKS) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    for (const [name, place, heading] of VIEWS) {
      await visit(page, place, heading);
      await page.locator('main .loading').first().waitFor({ state: 'detached' });
      await page.evaluate(() => document.getElementById('notes').replaceChildren());
      const path = join(directory, `${name}-${look}.png`);
      await page.screenshot({ path });
      say('picture', { path });
    }
  }
});
