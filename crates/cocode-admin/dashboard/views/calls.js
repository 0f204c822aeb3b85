// Calls as they happen: a plot for each server, and a table of all.
import { h, put, replace, sync, write } from '../lib/dom.js';
import { bytes, clock, count, milliseconds, moment, percent, plural } from '../lib/format.js';
import { roving } from '../lib/keys.js';
import { placeOf } from '../lib/router.js';
import { serversByName, state, watch } from '../lib/store.js';
import { plain, said } from '../lib/text.js';
import { openDialog } from '../parts/dialog.js';
import { icon } from '../parts/icons.js';
import { empty, loading } from '../parts/notes.js';
import { callBadge, callStates } from '../parts/states.js';
import { showPlots } from './calls-plots.js';

const MAX_ROWS = 200;
const CLOCK_MS = 500;

function details(call) {
  const facts = [
    ['Server', said(call.server)],
    ['Method', said(call.method, { class: 'mono' })],
    ['Name', said(call.name, { class: 'mono', limit: 400 })],
    ['Principal', call.principal && said(call.principal, { limit: 200 })],
    ['Began', clock(call.at)],
    ['Took', milliseconds(call.milliseconds)],
    ['Answer', call.bytes === undefined ? null : bytes(call.bytes)],
    [
      'Error',
      call.error &&
        said(
          typeof call.error === 'string' ? call.error : (call.error.message ?? JSON.stringify(call.error)),
          { limit: 2_000 },
        ),
    ],
    ['Id', said(call.id, { class: 'mono', limit: 100 })],
  ].filter(([, value]) => value);
  const badge = callBadge(call.state);
  const isTool = call.method === 'tools/call' && state.servers.has(call.server);
  openDialog('Call', (close) => [
    h('p', null, badge.node),
    h(
      'dl',
      { class: 'facts' },
      facts.map(([word, value]) => h('div', null, h('dt', null, word), h('dd', null, value))),
    ),
    isTool &&
      h(
        'div',
        { class: 'actions end' },
        h(
          'a',
          {
            class: 'button',
            href: placeOf(['servers', call.server, 'tools', call.name]),
            on: { click: () => close() },
          },
          icon('tool'),
          h('span', null, 'Open tool'),
        ),
      ),
  ]);
}

function progressWords(progress) {
  if (typeof progress !== 'object' || progress === null)
    return typeof progress === 'number' ? count(progress) : '';
  const share = progress.total > 0 ? percent(progress.progress, progress.total) : count(progress.progress);
  return [share, progress.message && plain(progress.message, 60)].filter(Boolean).join(' ');
}

function row(first) {
  let call = first;
  const badge = callBadge(first.state);
  const took = h('td', { class: 'right tabular', 'data-label': 'Took' });
  const size = h('td', { class: 'right tabular optional', 'data-label': 'Answer' });
  const progress = h('span', { class: 'faint small call-progress' });
  const open = h(
    'button',
    { type: 'button', class: 'call-name mono', tabindex: '-1', on: { click: () => details(call) } },
    plain(first.name, 90) || '–',
  );
  const node = h(
    'tr',
    { class: 'call' },
    h('td', { class: 'tabular faint', 'data-label': 'Time' }, clock(first.at)),
    h('td', { 'data-label': 'Server' }, said(first.server, { limit: 60 })),
    h(
      'td',
      { class: 'call-what', 'data-label': 'What' },
      open,
      first.method !== 'tools/call' && h('span', { class: 'faint small' }, ' ', plain(first.method, 40)),
      progress,
    ),
    h(
      'td',
      { class: 'optional', 'data-label': 'Principal' },
      first.principal && said(first.principal, { limit: 40 }),
    ),
    h('td', { 'data-label': 'State' }, badge.node),
    took,
    size,
  );
  const update = (next) => {
    call = next;
    badge.update(next.state);
    put(node, 'data-state', plain(next.state, 20));
    write(
      took,
      next.state === 'running'
        ? milliseconds(Math.max(0, Date.now() - (moment(next.at) ?? Date.now())))
        : milliseconds(next.milliseconds),
    );
    write(size, next.bytes === undefined ? '' : bytes(next.bytes));
    write(progress, next.state === 'running' ? progressWords(next.progress) : '');
  };
  update(first);
  return { node, update };
}

class Table {
  constructor(query) {
    this.body = h('tbody');
    this.filter = h('input', {
      type: 'search',
      class: 'input filter',
      placeholder: 'Filter calls',
      'aria-label': 'Filter calls',
      value: query.get('q') ?? '',
      autocomplete: 'off',
      spellcheck: 'false',
    });
    this.server = h('select', { class: 'input', 'aria-label': 'Server' });
    this.wantedServer = query.get('server') ?? '';
    this.kind = h(
      'select',
      { class: 'input', 'aria-label': 'State' },
      h('option', { value: '' }, 'All states'),
      h('option', { value: 'bad' }, 'Anything but OK'),
      callStates().map(({ name, label }) => h('option', { value: name }, label)),
    );
    this.pause = h(
      'button',
      { type: 'button', class: 'button', 'aria-pressed': 'false' },
      icon('pause'),
      h('span', null, 'Pause'),
    );
    this.number = h('span', { class: 'faint small', role: 'status' });
    this.nothing = h('div');
    this.frozen = null;
    const head = ['Time', 'Server', 'What', 'Principal', 'State', 'Took', 'Answer'].map((word, index) =>
      h(
        'th',
        {
          scope: 'col',
          class:
            [index > 4 && 'right', (index === 3 || index === 6) && 'optional'].filter(Boolean).join(' ') ||
            null,
        },
        word,
      ),
    );
    this.table = h(
      'table',
      { class: 'table calls' },
      h('caption', { class: 'hidden' }, 'Calls, newest first'),
      h('thead', null, h('tr', null, head)),
      this.body,
    );
    this.bar = h('div', { class: 'bar-line' }, this.filter, this.server, this.kind, this.pause, this.number);
    this.node = h(
      'section',
      { 'aria-label': 'Calls' },
      this.bar,
      h('div', { class: 'table-frame' }, this.table),
      this.nothing,
    );
    roving(this.body, '.call-name');
    this.pause.addEventListener('click', () => this.toggle());
    this.server.addEventListener('change', () => {
      this.wantedServer = this.server.value;
      this.update();
    });
    for (const control of [this.filter, this.kind]) control.addEventListener('input', () => this.update());
  }

  toggle() {
    this.frozen = this.frozen ? null : [...state.calls.values()];
    put(this.pause, 'aria-pressed', String(this.frozen !== null));
    replace(
      this.pause,
      icon(this.frozen ? 'play' : 'pause'),
      h('span', null, this.frozen ? 'Go on' : 'Pause'),
    );
    this.update();
  }

  fits(call) {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text =
      `${call.server} ${call.name} ${call.method} ${call.principal ?? ''} ${call.state}`.toLowerCase();
    const isServer = this.wantedServer === '' || call.server === this.wantedServer;
    const isKind =
      this.kind.value === '' ||
      (this.kind.value === 'bad' ? !['ok', 'running'].includes(call.state) : call.state === this.kind.value);
    return isServer && isKind && words.every((word) => text.includes(word));
  }

  showServers() {
    const names = [
      ...new Set([
        ...serversByName().map(({ name }) => name),
        ...[...state.calls.values()].map(({ server }) => String(server)),
        this.wantedServer,
      ]),
    ].filter(Boolean);
    const stamp = names.join('\n');
    if (stamp === this.shownServers) return;
    this.shownServers = stamp;
    replace(
      this.server,
      h('option', { value: '' }, 'All servers'),
      names.map((name) => h('option', { value: name }, plain(name, 60))),
    );
    this.server.value = this.wantedServer;
  }

  update() {
    this.showServers();
    const all = this.frozen ?? [...state.calls.values()];
    const shown = all.filter((call) => this.fits(call)).reverse();
    sync(this.body, shown.slice(0, MAX_ROWS), (call) => call.id, row);
    const names = this.body.querySelectorAll('.call-name');
    if (names.length > 0 && !this.body.querySelector('.call-name[tabindex="0"]')) names[0].tabIndex = 0;
    write(
      this.number,
      this.frozen
        ? 'Paused'
        : `${plural(shown.length, 'call')}${shown.length > MAX_ROWS ? `, the last ${MAX_ROWS} shown` : ''}`,
    );
    this.table.parentElement.hidden = shown.length === 0;
    this.bar.hidden = state.loaded.has('calls') && all.length === 0;
    const kind =
      shown.length > 0
        ? null
        : !state.loaded.has('calls')
          ? 'loading'
          : all.length === 0
            ? 'none'
            : 'filtered';
    if (kind === this.shownNothing) return;
    this.shownNothing = kind;
    const url = state.status?.url;
    replace(
      this.nothing,
      kind === 'loading' && loading(),
      kind === 'none' &&
        empty(
          'calls',
          'No calls yet',
          h(
            'p',
            null,
            'They appear here as clients make them. ',
            url ? ['Point one at ', h('code', null, plain(url, 100)), ', or '] : 'You can also ',
            h('a', { href: '#/tools' }, 'try a tool'),
            '.',
          ),
        ),
      kind === 'filtered' && empty('search', 'No call fits the filter'),
    );
  }
}

function mount(outlet, place, signal) {
  const table = new Table(place.query);
  const plots = h('div');
  replace(
    outlet,
    h(
      'div',
      { class: 'view-head' },
      h(
        'div',
        null,
        h('h1', { tabindex: '-1' }, 'Calls'),
        h('p', { class: 'lead' }, 'What clients have servers do, as it happens.'),
      ),
    ),
    plots,
    table.node,
  );
  showPlots(plots, signal);
  watch(
    ['calls', 'servers'],
    () => {
      if (table.frozen === null) table.update();
    },
    signal,
  );
  const timer = setInterval(() => {
    if (table.frozen === null && table.body.querySelector('[data-state="running"]')) table.update();
  }, CLOCK_MS);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  table.update();
}

export const callsView = { nav: 'calls', title: () => 'Calls', mount };
