#!/usr/bin/env node
// Looks at what has changed about a server of the project, and approves it.
//   COCODE_DASHBOARD_SERVER   the server that waits for approval
//   COCODE_DASHBOARD_REJECT   another one to reject, if wanted
import { must, say, scenario, setting, visit, waitForState } from './drive.mjs';

const server = setting('SERVER');
const other = setting('REJECT', '');

await scenario(async ({ page }) => {
  await page
    .getByRole('navigation', { name: 'Views' })
    .getByRole('link', { name: /^Trust/ })
    .click();
  await page.getByRole('heading', { level: 1, name: 'Trust' }).waitFor();
  const card = page
    .locator('li.trust')
    .filter({ has: page.getByRole('heading', { level: 2, name: server, exact: true }) });
  await card.waitFor();
  const lines = await card.locator('tr.diff-line').evaluateAll((rows) =>
    rows.map((row) => ({
      kind: row.classList.contains('come') ? 'added' : row.classList.contains('gone') ? 'removed' : 'same',
      said: row.querySelector('.diff-sign .hidden').textContent,
      text: row.querySelector('.diff-text').textContent,
    })),
  );
  must(
    lines.some((line) => line.kind === 'added' && line.said === 'added'),
    'nothing is shown as added',
  );
  say('difference', { lines });

  if (other) {
    await page.getByRole('button', { name: `Reject ${other}` }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click();
    await page.getByText(`${other} is rejected.`).waitFor();
    say('rejected', { name: other });
  }
  await page.getByRole('button', { name: `Approve ${server}` }).click();
  await page.getByText(`${server} is approved.`).waitFor();
  await card.waitFor({ state: 'detached' });
  say('approved');

  await visit(page, `servers/${encodeURIComponent(server)}`, server);
  await waitForState(page, 'ready', 'starting', 'slow');
  say('allowed to run');
});
