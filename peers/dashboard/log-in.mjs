#!/usr/bin/env node
// Logs in to a server: sees the address of the sign-in page, opens it, signs in there as the user of the OAuth peer.
//   COCODE_DASHBOARD_SERVER   the server that wants a login
import { USER } from '../oauth/pages.mjs';
import { must, rowOf, say, scenario, setting, visit, waitForState } from './drive.mjs';

const server = setting('SERVER');

await scenario(async ({ page, context }) => {
  const row = rowOf(page, server);
  await row.waitFor();
  must((await row.getAttribute('data-state')) === 'needs-auth', 'the server does not ask for a login');
  say('needs login', { reason: await row.locator('.reason').innerText() });

  await page.getByRole('button', { name: `Log in: ${server}` }).click();
  const dialog = page.getByRole('dialog', { name: `Log in to ${server}` });
  const link = dialog.getByRole('link', { name: /^Open sign-in page/ });
  await link.waitFor();
  const shown = await dialog.locator('p.address').innerText();
  must(
    shown === (await link.getAttribute('href')),
    'the address that is shown is not the one that is opened',
  );
  say('address', { shown, host: await dialog.locator('p.address strong').innerText() });

  const opening = context.waitForEvent('page');
  await link.click();
  const tab = await opening;
  await tab.waitForLoadState();
  must((await tab.evaluate(() => globalThis.opener)) === null, 'the page can reach back');
  if ((await tab.getByLabel('User').count()) > 0) {
    await tab.getByLabel('User').fill(USER.name);
    await tab.getByLabel('Password').fill(USER.password);
    await tab.getByRole('button', { name: 'Sign in' }).click();
    await tab.getByRole('button', { name: 'Allow' }).click();
    await tab.waitForLoadState();
  }
  say('signed in over there');

  await dialog.waitFor({ state: 'detached' });
  await page.getByText(`Logged in to ${server}.`).waitFor();
  await visit(page, `servers/${encodeURIComponent(server)}`, server);
  await waitForState(page, 'ready');
  say('ready');
});
