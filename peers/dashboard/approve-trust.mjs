#!/usr/bin/env node
// Looks at what has changed about a server of the project, and approves it.
//   COCODE_DASHBOARD_SERVER   the server that waits for approval
//   COCODE_DASHBOARD_REJECT   another one to reject, if wanted; it is approved after all in the end
//   COCODE_DASHBOARD_GONE     what a line says that is not there any more, if anything was approved before
import { must, say, scenario, setting, visit, waitForState } from './drive.mjs';

const server = setting('SERVER');
const other = setting('REJECT', '');
const gone = setting('GONE', '');

/** The card of an entry. */
const cardOf = (page, name) =>
  page
    .locator('li.trust')
    .filter({ has: page.getByRole('heading', { level: 2, name, exact: true }) });

/** Rejects one, which is not asked about any more, and can be approved after all. */
async function rejectAndThinkAgain(page, name) {
  await page.getByRole('button', { name: `Reject ${name}` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click();
  await page.getByText(`${name} is rejected.`).waitFor();
  await visit(page, 'servers', 'Servers');
  const row = page.getByRole('region', { name: 'Off' }).locator('li.server[data-state="rejected"]');
  await row.getByText('was rejected').waitFor();
  must(
    (await page.getByRole('region', { name: 'Needs attention' }).getByText(name).count()) === 0,
    'what was decided about is still said to need attention',
  );
  say('rejected', { name });
  await row.getByRole('button', { name: `Review: ${name}` }).click();
  await page.getByRole('heading', { level: 1, name: 'Trust' }).waitFor();
  const refused = page.getByRole('region', { name: 'Rejected' });
  await refused.getByRole('heading', { level: 2, name, exact: true }).waitFor();
  await refused.getByRole('button', { name: `Approve ${name}` }).click();
  await page.getByText(`${name} is approved.`).waitFor();
  await refused.waitFor({ state: 'hidden' });
  say('approved after all', { name });
}

await scenario(async ({ page }) => {
  await page
    .getByRole('navigation', { name: 'Views' })
    .getByRole('link', { name: /^Trust/ })
    .click();
  await page.getByRole('heading', { level: 1, name: 'Trust' }).waitFor();
  const card = cardOf(page, server);
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
  if (gone) {
    const removed = lines.filter((line) => line.kind === 'removed' && line.said === 'removed');
    must(
      removed.some((line) => line.text.includes(gone)),
      `“${gone}” is not shown as removed: ${JSON.stringify(lines)}`,
    );
    must(
      !lines.some((line) => line.kind !== 'removed' && line.text.includes(gone)),
      'it is shown as there, too',
    );
    must(
      lines.some((line) => line.kind === 'same'),
      'everything is shown as changed',
    );
  }
  say('difference', { lines });

  if (other) await rejectAndThinkAgain(page, other);
  await page.getByRole('button', { name: `Approve ${server}` }).click();
  await page.getByText(`${server} is approved.`).waitFor();
  await card.waitFor({ state: 'detached' });
  say('approved');

  await visit(page, `servers/${encodeURIComponent(server)}`, server);
  await waitForState(page, 'ready', 'starting', 'slow');
  say('allowed to run');
});
