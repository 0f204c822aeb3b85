#!/usr/bin/env node
// Makes a token, which is shown once and works, and revokes it, after which it does not.
//   COCODE_DASHBOARD_NAME   the name of the token (`browser-test`)
import { base, must, say, scenario, setting, visit } from './drive.mjs';

const name = setting('NAME', 'browser-test');

/** The status that the API answers a holder of the token with. */
async function statusFor(token) {
  const answer = await fetch(new URL('api/v1/status', base), {
    headers: { Authorization: `Bearer ${token}` },
  });
  await answer.text();
  return answer.status;
}

await scenario(async ({ page }) => {
  await visit(page, 'tokens', 'Tokens');
  const form = page.getByRole('form', { name: 'New token' });
  await form.getByLabel('Name').fill(name);
  await form.getByLabel('Expires').selectOption({ label: 'In 30 days' });
  await form.getByLabel(/management API/).check();
  await form.getByRole('button', { name: 'Create token' }).click();
  const secret = page.getByLabel('The token');
  await secret.waitFor();
  const token = await secret.innerText();
  await page.getByRole('button', { name: 'Copy' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  must((await page.evaluate(() => navigator.clipboard.readText())) === token, 'something else was copied');
  must((await statusFor(token)) === 200, 'the token does not work');
  say('created, shown and copied');

  await page.getByRole('button', { name: 'Done' }).click();
  must((await page.getByText(token).count()) === 0, 'the token is still shown');
  await page.reload();
  await visit(page, 'tokens', 'Tokens');
  const row = page.getByRole('table', { name: 'Tokens' }).getByRole('row').filter({ hasText: name });
  await row.waitFor();
  must(!(await page.content()).includes(token), 'the token is shown again');
  say('shown once');

  await row.getByRole('button', { name: `Revoke ${name}` }).click();
  await page
    .getByRole('dialog', { name: `Revoke ${name}?` })
    .getByRole('button', { name: 'Keep as it is' })
    .click();
  must((await statusFor(token)) === 200, 'the token was revoked without being confirmed');
  await row.getByRole('button', { name: `Revoke ${name}` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await page.getByText(`Token ${name} is revoked.`).waitFor();
  await row.waitFor({ state: 'detached' });
  must((await statusFor(token)) === 401, 'the token still works');
  // It was the last one, and the gateway still wants to see one.
  const left = page.getByRole('region', { name: 'Tokens' });
  await left.getByText('so nobody can connect').waitFor();
  must((await left.getByText('every program').count()) === 0, 'everybody is said to be let in');
  say('revoked');
});
