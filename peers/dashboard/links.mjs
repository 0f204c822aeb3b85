#!/usr/bin/env node
// Has the dashboard show addresses that servers give, and sees which of them become links, and what those show. Needs
// no server: the modules of the page are used as they are.
import { must, say, scenario } from './drive.mjs';

const NO_LINKS = [
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  ' javascript:alert(1)',
  'java\nscript:alert(1)',
  'data:text/html,<script>alert(1)</script>',
  'vbscript:x',
  'file:///etc/passwd',
  'blob:https://example.com/1',
  'ftp://example.com/',
  '//example.com/',
  '#/tokens',
  'https://',
  'demo://resource/1',
  `https://example.com/${'x'.repeat(20_000)}`,
  null,
  7,
  {},
];

const LINKS = [
  ['https://example.com/a?b=c#d', 'https://example.com/a?b=c#d'],
  ['HTTPS://EXAMPLE.com', 'https://example.com/'],
  ['https://good.example@evil.example/x', 'https://good.example@evil.example/x'],
  ['https://ex\u202eample.com/\u200b', null],
];

/** What becomes of an address inside of other text. */
const shown = (page, text) =>
  page.evaluate(async (given) => {
    const { addressLink } = await import(new URL('parts/links.js', document.baseURI).href);
    const node = document.createElement('p');
    node.append(addressLink(given));
    const link = node.querySelector('a');
    link?.querySelector('.hidden').remove();
    return {
      links: node.querySelectorAll('a').length,
      href: link?.getAttribute('href'),
      rel: link?.rel,
      target: link?.target,
      words: link?.textContent,
      host: link?.querySelector('strong').textContent,
      doubts: node.querySelector('.doubt')?.textContent ?? '',
    };
  }, text);

await scenario(async ({ page }) => {
  for (const text of NO_LINKS) {
    const { links } = await shown(page, text);
    must(links === 0, `${JSON.stringify(text)} is a link`);
  }
  say('no links', { number: NO_LINKS.length });
  for (const [text, expected] of LINKS) {
    const link = await shown(page, text);
    if (expected === null && link.links === 0) continue;
    must(expected === null || link.href === expected, `${text} leads to ${link.href}`);
    must(link.words === link.href, `what is shown is not what is followed: ${link.words}`);
    must(/^https?:/.test(link.href), `${text} leads to ${link.href}`);
    must(link.rel === 'noopener noreferrer' && link.target === '_blank', 'the page could reach back');
    must(link.host === new URL(link.href).host, `${link.host} is shown as the host of ${link.href}`);
    must(!text.includes('@') || link.doubts.includes('user name'), 'a user name is not spoken of');
    say('a link', link);
  }
});
