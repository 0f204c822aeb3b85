#!/usr/bin/env node
// Looks at settings of the project that wait for approval: long ones, which can be approved only when all of them was
// shown; changed ones, of which only a hash was kept; and such as nobody reads in a browser.
//   COCODE_DASHBOARD_FILE   the file, which says something that waits already, and is written anew here
import { writeFileSync } from 'node:fs';

import { must, say, scenario, setting } from './drive.mjs';

const file = setting('FILE');
const NAME = 'config.toml';

const long = (lines, last) =>
  `${Array.from({ length: lines }, (_, index) => `# line ${index + 1}`).join('\n')}\n${last}\n`;

await scenario(async ({ page }) => {
  await page
    .getByRole('navigation', { name: 'Views' })
    .getByRole('link', { name: /^Trust/ })
    .click();
  await page.getByRole('heading', { level: 1, name: 'Trust' }).waitFor();
  const card = page
    .locator('li.trust')
    .filter({ has: page.getByRole('heading', { level: 2, name: NAME, exact: true }) });
  const approve = card.getByRole('button', { name: `Approve ${NAME}` });
  const holds = (words) => card.filter({ hasText: words });
  await holds('Settings that this project brings along.').waitFor();
  must((await card.locator('.tag').first().innerText()) === 'settings', 'settings are called something else');
  must(!(await card.innerText()).includes('lets it run'), 'settings are called a server');
  say('settings');

  writeFileSync(file, long(3_000, `# the end ${'x'.repeat(5_000)} of it`));
  await holds('to go.').waitFor();
  must(await approve.isDisabled(), 'what was not shown can be approved');
  const more = card.getByRole('button', { name: /more lines?$/ });
  for (let step = 0; (await more.isVisible()) && step < 10; step += 1) await more.click();
  await holds('1 line is cut').waitFor();
  must(await approve.isDisabled(), 'a line that was cut can be approved');
  await card.getByRole('button', { name: /more characters$/ }).click();
  must((await card.locator('tr.diff-line').count()) === 3_001, 'some lines are not shown');
  must((await card.locator('.diff-text').last().innerText()).endsWith('of it'), 'the end is not shown');
  await approve.click();
  await page.getByText(`${NAME} is approved.`).waitFor();
  await card.waitFor({ state: 'detached' });
  say('approved once all of it was shown');

  writeFileSync(file, '# other\n');
  await holds('Only a hash of those was kept').waitFor();
  must((await card.locator('.diff-line.come, .diff-line.gone').count()) === 0, 'a difference is made up');
  must(!(await approve.isDisabled()), 'what was shown cannot be approved');
  say('changed settings');

  writeFileSync(file, long(41_000, '# the end'));
  await holds('too long to be read here').waitFor();
  must(await approve.isDisabled(), 'what nobody can read here can be approved');
  must((await card.innerText()).includes(`cocode mcp trust ${NAME}`), 'it does not say where to read it');
  say('too long');
});
