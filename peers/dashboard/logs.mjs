#!/usr/bin/env node
// Logs that grow: of a call with more lines than are kept, of a server that has said nothing yet; and a call on which
// the gateway goes silent. What the gateway would have to be driven hard for is answered here in its place.
//   COCODE_DASHBOARD_SERVER   a server that is ready, and writes something when it starts
//   COCODE_DASHBOARD_TOOL     a tool of it
import { forgive, must, placeOfTool, runTool, say, scenario, setting, visit } from './drive.mjs';

const server = setting('SERVER');
const tool = setting('TOOL');
const LINES = 620;
const KEPT = 500;

const event = (name, data) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

async function manyLines(page) {
  const log = (index) =>
    event('log', { at: new Date().toISOString(), stream: 'log', level: 'info', text: `line ${index + 1}` });
  const result = { result: { content: [{ type: 'text', text: 'done' }] }, milliseconds: 1 };
  const body = Array.from({ length: LINES }, (_, index) => log(index)).join('') + event('result', result);
  await page.route('**/api/v1/servers/*/call', (route) =>
    route.fulfill({ contentType: 'text/event-stream', body }),
  );
  await visit(page, placeOfTool(server, tool), server);
  await runTool(page, {});
  await page.locator('.run[data-state="ok"]').waitFor();
  const lines = await page.locator('.run-logs li').allInnerTexts();
  must(lines.length === KEPT, `${lines.length} lines are shown`);
  must(/\bline 620$/.test(lines.at(-1)), `the last line is ${lines.at(-1)}`);
  must(/\bline 121$/.test(lines[0]), `the first line is ${lines[0]}`);
  await page.unroute('**/api/v1/servers/*/call');
  say('the last lines of a call');
}

async function firstLines(page) {
  await page.route('**/api/v1/servers/*/logs?*', (route) => route.fulfill({ json: { lines: [] } }));
  await visit(page, `servers/${encodeURIComponent(server)}/logs`, server);
  const nothing = page.getByText('It has not said anything yet.');
  await nothing.waitFor();
  must((await page.locator('main').innerText()).includes('0 lines'), 'nothing is counted as a line');
  await page.getByRole('button', { name: `Actions for ${server}` }).click();
  await page.getByRole('menuitem', { name: 'Restart' }).click();
  await page.locator('.log-line').first().waitFor();
  await nothing.waitFor({ state: 'hidden' });
  await page.waitForFunction(() => {
    const number = document.querySelectorAll('.log-line').length;
    return document.querySelector('main').innerText.includes(`${number} line`);
  });
  await page.unroute('**/api/v1/servers/*/logs?*');
  say('the first lines of a server');
}

async function silence(page) {
  await page.clock.install();
  // The call is sent but never answered. Its timer starts when it is sent, which is later than it is shown as running.
  const call = '**/api/v1/servers/*/call';
  await page.route(call, () => {});
  await visit(page, placeOfTool(server, tool), server);
  await Promise.all([page.waitForRequest(call), runTool(page, {})]);
  await page.clock.fastForward(41_000);
  await page.locator('.run[data-state="error"]').waitFor();
  const words = await page.locator('.run').innerText();
  must(words.includes('The gateway has gone silent'), `a call without an end says ${words}`);
  forgive(/net::ERR_|aborted/);
  say('a call on which the gateway went silent');
}

await scenario(async ({ page }) => {
  await manyLines(page);
  await firstLines(page);
  await silence(page);
});
