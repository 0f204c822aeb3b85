// Search from anywhere: tools by what they are for, servers and places by name.
import { h, put, replace } from '../lib/dom.js';
import { get } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { placeOf } from '../lib/router.js';
import { serversByName } from '../lib/store.js';
import { plain } from '../lib/text.js';
import { openDialog } from './dialog.js';
import { icon } from './icons.js';
import { marked, toolWords } from './results.js';

const PAUSE_MS = 120;
const MAX_TOOLS = 12;
const MAX_SERVERS = 5;

const PLACES = [
  ['Servers', 'servers', 'server'],
  ['Calls', 'calls', 'calls'],
  ['Tools', 'tools', 'search'],
  ['Inbox', 'inbox', 'inbox'],
  ['Trust', 'trust', 'shield'],
  ['Tokens', 'tokens', 'key'],
  ['Budget', 'budget', 'gauge'],
  ['Add a server', 'add-server', 'plus'],
];

function nearby(query) {
  const word = query.toLowerCase();
  if (word === '') return [];
  const servers = serversByName()
    .filter(({ name }) => name.toLowerCase().includes(word))
    .slice(0, MAX_SERVERS);
  const places = PLACES.filter(([title]) => title.toLowerCase().startsWith(word));
  return [
    ...servers.map(({ name }) => ({
      href: placeOf(['servers', name]),
      words: [
        icon('server'),
        h(
          'span',
          { class: 'found-words' },
          h('span', { class: 'found-name' }, h('b', null, marked(plain(name, 80), query))),
        ),
        h('span', { class: 'found-cost' }, 'server'),
      ],
    })),
    ...places.map(([title, place, picture]) => ({
      href: placeOf([place]),
      words: [
        icon(picture),
        h('span', { class: 'found-words' }, h('b', null, title)),
        h('span', { class: 'found-cost' }, 'view'),
      ],
    })),
  ];
}

class Palette {
  constructor(close) {
    this.close = close;
    this.options = [];
    this.at = 0;
    this.asked = new AbortController();
    this.input = h('input', {
      type: 'text',
      class: 'palette-input',
      role: 'combobox',
      placeholder: 'Search tools, servers and views',
      'aria-label': 'Search tools, servers and views',
      'aria-expanded': 'true',
      'aria-controls': 'palette-list',
      'aria-autocomplete': 'list',
      autocomplete: 'off',
      spellcheck: 'false',
      autofocus: true,
    });
    this.list = h('ul', {
      id: 'palette-list',
      class: 'palette-list',
      role: 'listbox',
      'aria-label': 'Results',
    });
    this.status = h(
      'p',
      { class: 'palette-status', role: 'status' },
      'Say what the tool should do: “rename a file”, “open issues”.',
    );
    this.input.addEventListener('input', () => this.ask());
    this.input.addEventListener('keydown', (event) => this.key(event));
    this.list.addEventListener('pointerdown', (event) => event.preventDefault());
    this.list.addEventListener('click', (event) =>
      this.choose(this.options.findIndex(({ node }) => node.contains(event.target))),
    );
  }

  key(event) {
    const size = this.options.length;
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1 }[event.key];
    if (to !== undefined && size > 0) {
      event.preventDefault();
      this.mark((to + size) % size);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      this.choose(this.at);
    }
  }

  mark(at) {
    this.at = at;
    this.options.forEach(({ node }, index) => put(node, 'aria-selected', String(index === at)));
    const node = this.options[at]?.node;
    put(this.input, 'aria-activedescendant', node?.id ?? null);
    node?.scrollIntoView({ block: 'nearest' });
  }

  choose(at) {
    const option = this.options[at];
    if (!option) return;
    this.close();
    location.hash = option.href;
  }

  show(found) {
    this.options = found.map(({ href, words }, index) => ({
      href,
      node: h(
        'li',
        { id: `palette-${index}`, role: 'option', class: 'found', 'aria-selected': 'false' },
        words,
      ),
    }));
    replace(
      this.list,
      this.options.map(({ node }) => node),
    );
    this.mark(0);
  }

  ask() {
    const query = this.input.value.trim();
    this.asked.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    clearTimeout(this.timer);
    if (query === '') {
      this.show([]);
      this.status.textContent = 'Say what the tool should do: “rename a file”, “open issues”.';
      return;
    }
    this.timer = setTimeout(() => this.fetch(query, signal), PAUSE_MS);
  }

  async fetch(query, signal) {
    const near = nearby(query);
    try {
      const { tools } = await get('tools', { query: { query, limit: String(MAX_TOOLS) }, signal });
      const found = (Array.isArray(tools) ? tools : []).slice(0, MAX_TOOLS).map((tool) => ({
        href: placeOf(['servers', tool.server, 'tools', tool.name]),
        words: toolWords(tool, query),
      }));
      this.show([...near, ...found]);
      this.status.textContent =
        near.length + found.length === 0
          ? 'Nothing fits. Other words may.'
          : plural(near.length + found.length, 'result');
    } catch (problem) {
      if (signal.aborted) return;
      this.show(near);
      this.status.textContent = problem.message;
    }
  }
}

function openPalette() {
  openDialog(
    'Search',
    (close) => {
      const palette = new Palette(close);
      return [
        h('div', { class: 'palette-box' }, icon('search'), palette.input),
        palette.list,
        palette.status,
      ];
    },
    { class: 'palette' },
  );
}

/** `/`: the box of the view, if it has one, else the palette. */
export function search() {
  const box = document.querySelector('main [data-search]');
  if (box) box.focus();
  else openPalette();
}
