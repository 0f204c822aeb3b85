// The frame around every view: where one can go, what waits there, how the connection is.
import { button, h, put, replace, write } from '../lib/dom.js';
import { count, span } from '../lib/format.js';
import { runningCalls, state, watch } from '../lib/store.js';
import { plain, said } from '../lib/text.js';
import { openHelp } from './help.js';
import { icon } from './icons.js';
import { menuButton } from './menu.js';
import { callFor } from './notes.js';
import { search } from './palette.js';
import { serverState } from './states.js';

const FEED_WORDS = new Map([
  ['live', 'Live'],
  ['connecting', 'Connecting'],
  ['lost', 'Disconnected'],
]);
const THEMES = [
  ['auto', 'As the system', 'auto'],
  ['light', 'Light', 'sun'],
  ['dark', 'Dark', 'moon'],
];

const inShell = (selector) => document.querySelector(`[data-shell] ${selector}`);

function themeItems() {
  const now = globalThis.cocodeTheme.get();
  return THEMES.map(([name, label, picture]) => ({
    label,
    icon: picture,
    isChecked: name === now,
    act: () => globalThis.cocodeTheme.set(name),
  }));
}

/** Goes from automatic to what it is not now, and back. */
export function toggleTheme() {
  const isDark =
    globalThis.cocodeTheme.get() === 'dark' ||
    (globalThis.cocodeTheme.get() === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
  globalThis.cocodeTheme.set(isDark ? 'light' : 'dark');
}

/** Fills the frame, once. `feed` gives the connection of the moment, `signOut` ends the session. */
export function prepareShell({ feed, signOut }) {
  for (const place of document.querySelectorAll('[data-icon]')) place.replaceWith(icon(place.dataset.icon));
  inShell('[data-act="search"]').addEventListener('click', search);
  document.querySelector('[data-skip]').addEventListener('click', (event) => {
    event.preventDefault();
    document.getElementById('main').focus();
  });
  inShell('[data-shell-buttons]').append(
    menuButton('Theme', themeItems, { picture: 'auto' }),
    h(
      'button',
      {
        type: 'button',
        class: 'button quiet square',
        'aria-label': 'Keyboard shortcuts',
        on: { click: openHelp },
      },
      icon('help'),
    ),
    h(
      'button',
      { type: 'button', class: 'button quiet square', 'aria-label': 'Sign out', on: { click: signOut } },
      icon('leave'),
    ),
  );
  watch(['feed'], () => showFeed(feed));
  watch(['servers', 'elicitations', 'trust', 'calls', 'status', 'session'], showBadges);
  watch(['elicitations'], tellQuestions);
  setInterval(() => showCountdown(), 1_000);
}

function showFeed(feed) {
  const { state: now } = state.feed;
  put(inShell('.feed'), 'data-feed', now);
  write(inShell('[data-feed-words]'), FEED_WORDS.get(now));
  const banner = document.getElementById('banner');
  // A first attempt is no loss, and an attempt during a loss does not make the banner flicker.
  const isLost = now === 'lost' || (now === 'connecting' && !banner.hidden);
  if (banner.hidden === !isLost) {
    showCountdown();
    return;
  }
  banner.hidden = !isLost;
  replace(
    banner,
    isLost && [
      icon('warning'),
      h(
        'p',
        null,
        'The connection to the gateway is lost. What you see may be out of date. ',
        state.feed.said && [said(state.feed.said, { limit: 200 }), ' '],
        h('span', { class: 'countdown', 'aria-hidden': 'true' }),
      ),
      button('Try now', { kind: 'small', on: { click: () => feed()?.retry() } }),
    ],
  );
  showCountdown();
}

function showCountdown() {
  const place = document.querySelector('#banner .countdown');
  if (!place) return;
  const left = (state.feed.retryAt ?? 0) - Date.now();
  write(
    place,
    state.feed.state === 'lost' && left > 0 ? `Next attempt in ${span(Math.ceil(left / 1_000))}.` : 'Trying…',
  );
}

function badge(name, number, words) {
  const place = inShell(`[data-badge="${name}"]`);
  place.hidden = number === 0;
  if (number > 0 && place.dataset.number !== String(number)) {
    replace(
      place,
      h('span', { 'aria-hidden': 'true' }, number > 99 ? '99+' : String(number)),
      h('span', { class: 'hidden' }, ` ${words(number)}`),
    );
  }
  place.dataset.number = String(number);
}

function showBadges() {
  const servers = [...state.servers.values()];
  const troubled = servers.filter((server) => serverState(server.state).group === 'attention').length;
  badge('servers', troubled, (n) => `${n} need attention`);
  badge('calls', runningCalls(), (n) => `${n} running`);
  badge('inbox', state.elicitations.length, (n) => `${n} waiting`);
  badge('trust', state.trust.length, (n) => `${n} to review`);
  const { version } = state.session ?? {};
  const { url } = state.status ?? {};
  write(
    inShell('[data-gateway]'),
    [version && `v${plain(version, 30)}`, url && plain(url, 60)].filter(Boolean).join(' · '),
  );
  showTitle();
}

let viewTitle = '';

function showTitle() {
  const waiting = state.elicitations.length + state.trust.length;
  document.title = `${waiting > 0 ? `(${count(waiting)}) ` : ''}${viewTitle ? `${viewTitle} · ` : ''}cocode`;
}

/** Marks the view that is shown. */
export function showPlace(view, title) {
  viewTitle = title;
  showTitle();
  if (view === 'inbox') questionNote?.remove();
  for (const link of document.querySelectorAll('.nav a'))
    put(link, 'aria-current', link.dataset.view === view ? 'page' : null);
}

const told = new Set();
let questionNote = null;

/** Calls for somebody when servers ask, with one note for all, unless the inbox is in view. */
function tellQuestions() {
  const waiting = state.elicitations;
  const isNew = waiting.some(({ id }) => !told.has(id));
  told.clear();
  for (const { id } of waiting) told.add(id);
  const isSeen = location.hash.startsWith('#/inbox');
  if (isSeen || waiting.length === 0 || isNew) questionNote?.remove();
  if (isSeen || !isNew) return;
  const [{ kind, server, tool }] = waiting;
  const words =
    waiting.length > 1
      ? `${count(waiting.length)} questions wait for you.`
      : kind === 'consent'
        ? `A call of ${plain(tool ?? 'a tool', 60)} of ${plain(server, 60)} waits until you allow it.`
        : `${plain(server, 60)} asks you something.`;
  const verb = kind === 'consent' ? 'Look' : 'Answer';
  questionNote = callFor(words, {
    actions: [h('a', { class: 'button small primary', href: '#/inbox' }, verb)],
  });
}
