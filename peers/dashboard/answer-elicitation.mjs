#!/usr/bin/env node
// Answers the question of a server in the inbox: a form, or an address that is looked at and not opened.
//   COCODE_DASHBOARD_SERVER      the server that asks
//   COCODE_DASHBOARD_TOOL        the tool that makes it ask; empty if somebody else calls it
//   COCODE_DASHBOARD_ARGUMENTS   its arguments, as JSON ({})
//   COCODE_DASHBOARD_ANSWER      what to fill in, by the names of the schema, as JSON ({})
//   COCODE_DASHBOARD_ACTION      accept, decline or cancel (accept)
//   COCODE_DASHBOARD_EXPECT      what the result of the tool has to contain, if it is called from here
import { must, fillField, placeOfTool, runTool, say, scenario, setting, visit } from './drive.mjs';

const server = setting('SERVER');
const tool = setting('TOOL', '');
const args = JSON.parse(setting('ARGUMENTS', '{}'));
const answer = JSON.parse(setting('ANSWER', '{}'));
const action = setting('ACTION', 'accept');
const expected = setting('EXPECT', '');

const BUTTONS = { accept: /^(Send answer|Accept|Done, go on)$/, decline: 'Decline', cancel: 'Dismiss' };
const DONE = { accept: 'Answered.', decline: 'Declined.', cancel: 'Dismissed.' };

await scenario(async ({ page }) => {
  if (tool) {
    await visit(page, placeOfTool(server, tool), server);
    await runTool(page, args);
    await page.getByRole('link', { name: 'Answer it in the inbox' }).waitFor();
    say('the tool asks');
  }
  await page
    .getByRole('navigation', { name: 'Views' })
    .getByRole('link', { name: /^Inbox/ })
    .click();
  await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
  const card = page.locator('li.question').filter({ hasText: server }).first();
  await card.waitFor();
  say('question', { words: await card.locator('.question-words').innerText() });

  const address = card.locator('.address-box');
  if ((await address.count()) > 0) {
    const link = address.getByRole('link', { name: /^Open page/ });
    const shown = await address.locator('p.address').innerText();
    must(
      shown === (await link.getAttribute('href')),
      'the address that is shown is not the one that is opened',
    );
    must(/\bnoopener\b/.test(await link.getAttribute('rel')), 'the page could reach back');
    say('address', { shown, host: await address.locator('p.address strong').innerText() });
  }
  for (const [name, value] of Object.entries(answer)) await fillField(card, name, value);
  await card.getByRole('button', { name: BUTTONS[action] }).click();
  await page.getByText(DONE[action], { exact: true }).waitFor();
  await card.waitFor({ state: 'detached' });
  say('answered', { action });

  if (!tool) return;
  await visit(page, placeOfTool(server, tool), server);
  await page.locator('.run:is([data-state="ok"], [data-state="tool-error"], [data-state="error"])').waitFor();
  const result = await page.locator('.run').innerText();
  must(result.includes(expected), `the result does not contain ${expected}: ${result}`);
  say('the call went on', { result });
});
