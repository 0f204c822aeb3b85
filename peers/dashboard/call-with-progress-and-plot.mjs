#!/usr/bin/env node
// Calls a tool that reports progress, while another tab looks at the calls: the bar fills, and the plot moves.
//   COCODE_DASHBOARD_SERVER      the server
//   COCODE_DASHBOARD_TOOL        a tool that reports progress for a second or more
//   COCODE_DASHBOARD_ARGUMENTS   its arguments, as JSON ({})
import { must, placeOfTool, runTool, say, scenario, setting, visit } from './drive.mjs';

const server = setting('SERVER');
const tool = setting('TOOL');
const args = JSON.parse(setting('ARGUMENTS', '{}'));

/** What the progress bar shows, each value once, from now on. */
function watchProgress(page) {
  return page.evaluate(() => {
    globalThis.seenProgress = [];
    const look = () => {
      const bar = document.querySelector('progress.run-bar');
      const value = bar?.hasAttribute('value') ? bar.value / bar.max : null;
      if (value !== null && !globalThis.seenProgress.includes(value)) globalThis.seenProgress.push(value);
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true });
  });
}

const plotOf = (page) => page.locator(`figure[data-server="${server}"]`);

/** How many dots there are and how far they have moved; no dots if there is no plot yet. */
async function plotFacts(page) {
  const plot = plotOf(page);
  if ((await plot.count()) === 0) return { calls: 0, dots: 0, label: '', moved: '' };
  return plot.evaluate((figure) => ({
    calls: Number(figure.querySelectorAll('.numbers dd')[2].textContent),
    dots: figure.querySelectorAll('.dots > *').length,
    label: figure.querySelector('svg').getAttribute('aria-label'),
    moved: figure.querySelector('.dots').getAttribute('transform'),
  }));
}

await scenario(async ({ page, context }) => {
  const calls = await context.newPage();
  await calls.goto(page.url());
  await visit(calls, 'calls', 'Calls');
  await calls.locator('[data-feed="live"]').waitFor();
  await calls.locator('[data-latencies="known"]').waitFor({ state: 'attached' });
  const before = await plotFacts(calls);
  say('plot before', before);

  await visit(page, placeOfTool(server, tool), server);
  await page.getByRole('heading', { level: 2, name: tool }).waitFor();
  await watchProgress(page);
  await runTool(page, args);
  await page.locator('.run[data-state="running"]').waitFor();
  await calls.locator('tr[data-state="running"]', { hasText: tool }).first().waitFor();
  say('running, and seen by the other tab');

  await page.locator('.run[data-state="ok"]').waitFor();
  const progress = await page.evaluate(() => globalThis.seenProgress);
  must(progress.length >= 2, `progress was seen ${progress.length} times only`);
  must(
    [...progress].every((value, index) => index === 0 || value > progress[index - 1]),
    'progress went back',
  );
  const result = await page.locator('.result .code').first().innerText();
  say('ended', { progress, result });

  await plotOf(calls).waitFor();
  await calls.waitForFunction(
    ([name, dots]) =>
      document.querySelectorAll(`figure[data-server="${CSS.escape(name)}"] .dots > *`).length > dots,
    [server, before.dots],
  );
  const after = await plotFacts(calls);
  must(after.label !== before.label, 'the words of the plot are the same');
  must(after.calls > before.calls, 'the plot does not count the call');
  await calls.waitForFunction(
    ([name, moved]) =>
      document.querySelector(`figure[data-server="${CSS.escape(name)}"] .dots`).getAttribute('transform') !==
      moved,
    [server, after.moved],
  );
  say('the plot moved', after);

  const row = calls.locator('tr.call', { hasText: tool }).first();
  must((await row.getAttribute('data-state')) === 'ok', 'the table does not say how the call ended');
  await row.getByRole('button', { name: tool }).click();
  await calls.getByRole('dialog', { name: 'Call' }).getByText('Took').waitFor();
  await calls.keyboard.press('Escape');
  await calls.getByRole('button', { name: 'Table' }).click();
  await calls
    .getByRole('table', { name: 'Latencies of each server' })
    .getByRole('link', { name: server })
    .waitFor();
  say('told in words, too');
});
