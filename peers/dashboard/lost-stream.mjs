#!/usr/bin/env node
// Loses the connection to the gateway and finds it again: that is said, events go on from where they broke, and the log
// that is looked at is read anew.
//   COCODE_DASHBOARD_SERVER   a server whose log is looked at
// Between the browser and the gateway is a wire that can be cut.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const gateway = new URL(process.env.COCODE_DASHBOARD_URL);
const sockets = new Set();
let isCut = false;

const wire = createServer((near) => {
  if (isCut) {
    near.destroy();
    return;
  }
  const far = connect(Number(gateway.port), gateway.hostname);
  for (const [one, other] of [
    [near, far],
    [far, near],
  ]) {
    sockets.add(one);
    one.on('error', () => one.destroy());
    one.on('close', () => {
      sockets.delete(one);
      other.destroy();
    });
    one.pipe(other);
  }
});
wire.listen(0, '127.0.0.1');
await once(wire, 'listening');
process.env.COCODE_DASHBOARD_URL = `http://127.0.0.1:${wire.address().port}/`;
// Only now does the environment say where to go.
const { forgive, must, say, scenario, setting, visit } = await import('./drive.mjs');

await scenario(async ({ page }) => {
  const asked = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/api/v1/events')) asked.push(request.headers());
  });
  const server = setting('SERVER');
  await visit(page, `servers/${encodeURIComponent(server)}/logs`, server);
  await page.locator('.log-line').first().waitFor();
  isCut = true;
  for (const socket of sockets) socket.destroy();
  const banner = page.locator('#banner');
  await banner.getByText('The connection to the gateway is lost.').waitFor();
  must(
    (await page.locator('.feed').innerText()) === 'Disconnected',
    'the frame does not say that nothing is live',
  );
  say('lost', { words: (await banner.innerText()).replace(/\s+/g, ' ') });

  const isLog = (request) => request.url().includes('/logs?') && !isCut;
  const readAnew = page.waitForRequest(isLog);
  isCut = false;
  // Unless the page has tried by itself just now, and there is no button any more.
  await page.evaluate(() => document.querySelector('#banner button')?.click());
  await page.locator('[data-feed="live"]').waitFor();
  await banner.waitFor({ state: 'hidden' });
  const last = asked.at(-1)?.['last-event-id'];
  must(last !== undefined, 'the stream was opened anew without saying what was heard last');
  await readAnew;
  forgive(/net::ERR_/);
  say('found again', { attempts: asked.length, last });
});
wire.close();
