#!/usr/bin/env node
// Says what to do to those who come with a wrong code, and what is wrong in the files to those who come late.
//   COCODE_DASHBOARD_PROBLEM   what is said of a file, since before anybody looked
import { base, forgive, must, say, scenario, setting } from './drive.mjs';

const HOW = 'cocode gateway code';

await scenario(
  async ({ page }) => {
    await page.goto(base.href);
    await page.getByText('Where is the code?').click();
    await page.locator('.sign-in details').getByText(HOW).waitFor();
    await page.getByLabel('One-time code').fill('AAAA-BBBB-CCCC-DDDD');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('.sign-in form').getByText(HOW).waitFor();
    forgive(/401/);
    say('a wrong code says how to get another');

    await page.getByLabel('One-time code').fill(setting('CODE'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    const box = page.locator('.config-problems');
    await box.getByText(setting('PROBLEM')).waitFor();
    await page.reload();
    await box.getByText(setting('PROBLEM')).waitFor();
    const words = (await box.innerText()).replace(/\s+/g, ' ');
    must(!/was changed/.test(words), `it speaks of a change that nobody made: ${words}`);
    say('what is wrong in the files is said whenever somebody looks', { words });
  },
  { isSignedIn: false },
);
