#!/usr/bin/env node
// Allows a call that a rule wants somebody to allow, and denies another, after looking at what would be called.
//   COCODE_DASHBOARD_SERVER      the server
//   COCODE_DASHBOARD_TOOL        the tool that a rule asks about
//   COCODE_DASHBOARD_ARGUMENTS   its arguments, as JSON
//   COCODE_DASHBOARD_EXPECT      what the result of the tool has to contain
//   COCODE_DASHBOARD_RULE        what the reason has to contain
import { must, placeOfTool, runTool, say, scenario, setting, visit } from './drive.mjs';

const server = setting('SERVER');
const tool = setting('TOOL');
const args = JSON.parse(setting('ARGUMENTS'));
const expected = setting('EXPECT');
const rule = setting('RULE');

/** Calls the tool, follows the link to the inbox, and gives the card that stands there. */
async function asked(page, given) {
  await visit(page, placeOfTool(server, tool), server);
  await runTool(page, given);
  await page.getByText('A rule wants somebody to allow this call.').waitFor();
  await page.getByRole('link', { name: 'Look at it in the inbox' }).click();
  await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
  const card = page.locator('li.consent');
  await card.waitFor();
  return card;
}

/** What the card says, by name of argument. */
const shownArguments = (card) =>
  card
    .locator('.argument')
    .evaluateAll((rows) =>
      rows.map((row) => [
        row.querySelector('dt .said').textContent,
        row.querySelector('.argument-value').textContent,
      ]),
    );

async function outcome(page) {
  await visit(page, placeOfTool(server, tool), server);
  await page.locator('.run:is([data-state="ok"], [data-state="tool-error"], [data-state="error"])').waitFor();
  return page.locator('.run').innerText();
}

await scenario(async ({ page }) => {
  const card = await asked(page, args);
  const head = await card.getByRole('heading', { level: 2 }).innerText();
  must(head.includes(`wants to call ${tool} of ${server}`), `it does not say who wants what: ${head}`);
  const shown = await shownArguments(card);
  const wanted = Object.entries(args).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value, null, 2),
  ]);
  must(JSON.stringify(shown) === JSON.stringify(wanted), `it shows ${JSON.stringify(shown)}`);
  const words = await card.innerText();
  must(words.includes(rule), `it does not say which rule asks: ${words}`);
  must(!/goes to the server/.test(words), 'it looks like a question of the server');
  say('a call to be allowed', { head, shown });
  await card.getByRole('button', { name: `Allow the call of ${tool} of ${server}` }).click();
  await page.getByText('Allowed.', { exact: true }).waitFor();
  await card.waitFor({ state: 'detached' });
  const result = await outcome(page);
  must(result.includes(expected), `the result does not contain ${expected}: ${result}`);
  say('allowed', { result });

  const other = await asked(page, { ...args, hidden: 'a\u202eb\u200b<img src=x>' });
  const [, text] = (await shownArguments(other)).at(-1);
  must(text === 'a⟨U+202E⟩b⟨U+200B⟩<img src=x>', `something in an argument hides: ${text}`);
  await other.getByRole('button', { name: 'Deny' }).click();
  await page.getByText('Denied.', { exact: true }).waitFor();
  const refusal = await outcome(page);
  must(/the answer was no/.test(refusal), `a call that was denied says ${refusal}`);
  say('denied');
});
