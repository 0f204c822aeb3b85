// Addresses that servers give: shown whole, their host in bold, and followed only by a click of somebody who saw them.
import { h } from '../lib/dom.js';
import { said, visible } from '../lib/text.js';
import { icon } from './icons.js';

/** The parts of a web address, or null if it is none. What is shown is what is followed. */
export function readAddress(text) {
  if (typeof text !== 'string' || text.length > 16_000) return null;
  try {
    const url = new URL(text);
    const isWeb = url.protocol === 'http:' || url.protocol === 'https:';
    if (!isWeb || url.hostname === '') return null;
    // A user name before the host may look like the host.
    const user =
      url.href
        .slice(url.protocol.length + 2)
        .split(/[/?#]/, 1)[0]
        .lastIndexOf('@') + 1;
    const start = url.protocol.length + 2 + user;
    return {
      href: url.href,
      before: url.href.slice(0, start),
      host: url.host,
      after: url.href.slice(start + url.host.length),
      hostname: url.hostname,
      hasUser: user > 0,
      isPlain: url.protocol === 'http:',
    };
  } catch {
    return null;
  }
}

const isHere = (hostname) =>
  ['localhost', '127.0.0.1', '[::1]'].includes(hostname) || hostname.endsWith('.localhost');

/** What is worth a second look before an address is opened. */
function doubts({ hostname, hasUser, isPlain }) {
  const found = [];
  if (hasUser)
    found.push('It contains a user name, which can make it look like the address of somebody else.');
  if (hostname.split('.').some((label) => label.startsWith('xn--')))
    found.push(
      'Its host has letters outside of ASCII (it starts with “xn--”), which can imitate other names.',
    );
  if (isPlain && !isHere(hostname)) found.push('It is not encrypted (http).');
  return found;
}

/** The whole address as text, the host emphasised. */
const addressText = ({ before, host, after }) => [
  visible(before),
  h('strong', null, visible(host)),
  visible(after),
];

/** What makes a link open a page of its own, which learns nothing of this one. */
const OUTSIDE = { target: '_blank', rel: 'noopener noreferrer', referrerpolicy: 'no-referrer' };

/** An address with what is doubtful about it and a link that opens it in a tab of its own; text alone if it is none. */
export function addressBox(text, { label, onOpen = () => {} }) {
  const address = readAddress(text);
  if (!address) {
    return h(
      'div',
      { class: 'box bad' },
      icon('warning'),
      h(
        'div',
        null,
        h('p', null, 'This is not the address of a web page, so it cannot be opened from here:'),
        said(text, { tag: 'p', class: 'address', limit: 1_000 }),
      ),
    );
  }
  const warnings = doubts(address);
  return h(
    'div',
    { class: 'address-box' },
    h('p', { class: 'address', dir: 'ltr' }, addressText(address)),
    warnings.length > 0 &&
      h(
        'ul',
        { class: 'hints warn' },
        warnings.map((warning) => h('li', null, warning)),
      ),
    h(
      'a',
      { class: 'button primary', href: address.href, ...OUTSIDE, on: { click: onOpen } },
      icon('open'),
      h('span', null, label),
      h('span', { class: 'hidden' }, ` (${address.host}, opens a new tab)`),
    ),
  );
}

/** A web address of a server inside of other text: a link that shows itself in full with what is doubtful, or text. */
export function addressLink(text) {
  const address = readAddress(text);
  if (!address) return said(text, { class: 'mono', limit: 1_000 });
  const warnings = doubts(address);
  return h(
    'span',
    { class: 'address-link' },
    h(
      'a',
      { class: 'mono', dir: 'ltr', href: address.href, ...OUTSIDE },
      addressText(address),
      h('span', { class: 'hidden' }, ' (opens a new tab)'),
    ),
    warnings.length > 0 && h('span', { class: 'small doubt' }, ` ${warnings.join(' ')}`),
  );
}
