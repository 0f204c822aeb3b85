#!/usr/bin/env node
// Uses the dashboard without a mouse: the skip link, shortcuts, menus, tabs, lists, dialogs.
//   COCODE_DASHBOARD_SERVER   a server that is ready
import { must, say, scenario, setting, visit, waitForState } from './drive.mjs';

const server = setting('SERVER');

const focused = (page) =>
  page.evaluate(() => {
    const element = document.activeElement;
    return (element.getAttribute('aria-label') ?? element.textContent).trim().replace(/\s+/g, ' ');
  });

await scenario(async ({ page }) => {
  await page.reload();
  await page.locator('[data-feed="live"]').waitFor();
  await page.keyboard.press('Tab');
  must((await focused(page)) === 'Skip to the content', `the first stop is ${await focused(page)}`);
  await page.keyboard.press('Enter');
  must(await page.evaluate(() => document.activeElement.id === 'main'), 'the skip link leads nowhere');
  say('skipped');

  for (const [keys, heading] of [
    ['gc', 'Calls'],
    ['gt', 'Tools'],
    ['gi', 'Inbox'],
    ['gr', 'Trust'],
    ['gk', 'Tokens'],
    ['gb', 'Budget'],
    ['a', 'Add a server'],
    ['gs', 'Servers'],
  ]) {
    for (const key of keys) await page.keyboard.press(key);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    must((await focused(page)) === heading, `after ${keys} the focus is on ${await focused(page)}`);
  }
  say('went everywhere');

  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('/');
  await page.getByRole('combobox').fill(server);
  await page.getByRole('option').first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  must(
    (await page.locator('[role="option"][aria-selected="true"]').count()) === 1,
    'nothing or too much is chosen',
  );
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: server }).waitFor();
  say('found');

  await visit(page, `servers/${encodeURIComponent(server)}`, server);
  await waitForState(page, 'ready');
  await page.getByRole('tab', { name: 'Overview' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.locator('[role="tab"][aria-selected="true"]', { hasText: 'Tools' }).waitFor();
  must((await focused(page)).startsWith('Tools'), 'the focus did not follow the tab');
  await page.locator('a.tool-row').first().focus();
  const first = await focused(page);
  await page.keyboard.press('ArrowDown');
  must(
    (await focused(page)) !== first || (await page.locator('a.tool-row').count()) === 1,
    'arrows do not move in the list',
  );
  say('moved');

  const actions = page.getByRole('button', { name: `Actions for ${server}` });
  await actions.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('menu').waitFor();
  await page.keyboard.press('End');
  say('menu', { last: await focused(page) });
  await page.keyboard.press('Escape');
  await page.getByRole('menu').waitFor({ state: 'detached' });
  must(
    await actions.evaluate((element) => element === document.activeElement),
    'the focus did not come back',
  );

  await page.keyboard.press('?');
  await page.getByRole('switch', { name: 'Shortcuts of single keys' }).uncheck();
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('c');
  must(
    (await page.getByRole('heading', { level: 1, name: 'Calls' }).count()) === 0,
    'shortcuts cannot be switched off',
  );
  say('switched off');
});
