#!/usr/bin/env node
// Looks at views while servers come and go and calls are made elsewhere: they follow, and keep what somebody has opened.
//   COCODE_DASHBOARD_SERVER      a server that is ready
//   COCODE_DASHBOARD_TOOL        a tool of it that takes some seconds
//   COCODE_DASHBOARD_ARGUMENTS   its arguments, as JSON
import { PHONE, WIDE, must, placeOfTool, rowOf, runTool, say, scenario, setting, visit } from './drive.mjs';

const server = setting('SERVER');
const tool = setting('TOOL');
const args = JSON.parse(setting('ARGUMENTS'));

/** Does something to the server behind the back of the view. */
const change = (page, verb) =>
  page.evaluate(
    async ([name, deed]) => {
      const session = await fetch('api/v1/session').then((answer) => answer.json());
      const answer = await fetch(`api/v1/servers/${encodeURIComponent(name)}/${deed}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Cocode-CSRF': session.csrf },
        body: '{}',
      });
      if (!answer.ok) throw new Error(`${deed}: ${answer.status}`);
    },
    [server, verb],
  );

await scenario(async ({ page }) => {
  await visit(page, placeOfTool(server, tool), server);
  await runTool(page, args);
  await page.locator('.run[data-state="running"]').waitFor();
  await visit(page, 'servers', 'Servers');
  const flight = rowOf(page, server).locator('.flight');
  await flight.getByText('1 running').waitFor();
  await flight.waitFor({ state: 'hidden' });
  say('running calls are counted as they go on');

  await visit(page, 'tools', 'Tools');
  const found = page.locator('a.found');
  await found.first().waitFor();
  const before = await found.count();
  await change(page, 'disable');
  await found.first().waitFor({ state: 'detached' });
  await page.getByText('No tools', { exact: true }).waitFor();
  await change(page, 'enable');
  await change(page, 'connect');
  await found.first().waitFor();
  must((await found.count()) === before, `${await found.count()} tools are back of ${before}`);
  say('tools come and go with their server', { before });

  await visit(page, 'budget', 'Budget');
  // Ten percent as the threshold counts tokens, of which there are more than in the budget.
  await page.getByText('6.3%: tool search begins by itself').waitFor();
  await page.setViewportSize(PHONE);
  const part = page.locator('.window-part').first();
  const painted = await part.evaluate((one) => one.clientWidth);
  must(painted >= 2, `of a part of the window, ${painted} pixels can be seen on a phone`);
  await page.setViewportSize(WIDE);
  say('the budget says when search begins, and is seen on a phone', { painted });

  const details = page.locator('details.budget-server');
  await details.locator('summary').click();
  await details.locator('.budget-tool').first().waitFor();
  const again = page.waitForResponse((response) => response.url().endsWith('/api/v1/budget'));
  await change(page, 'restart');
  await again;
  await page.waitForTimeout(200);
  must(await details.evaluate((one) => one.open), 'what was opened is closed');
  must(
    await details.evaluate((one) => one.querySelector('summary') === document.activeElement),
    'the focus is somewhere else',
  );
  say('what was opened stays open');
});
