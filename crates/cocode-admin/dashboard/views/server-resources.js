// The resources of a server, and those that its templates describe: listed, and read.
import { button, h, replace } from '../lib/dom.js';
import { path, sendLong } from '../lib/api.js';
import { bytes, plural } from '../lib/format.js';
import { plain, said } from '../lib/text.js';
import { resourceResult } from '../parts/content.js';
import { openDialog } from '../parts/dialog.js';
import { icon } from '../parts/icons.js';
import { loading, problemBox } from '../parts/notes.js';
import { showOffers } from '../parts/offers.js';

const MAX_SHOWN = 500;

function read(name, uri) {
  const ended = new AbortController();
  return openDialog(
    'Resource',
    () => {
      const place = h('div', null, loading('Reading'));
      const onWait = () => replace(place, loading('Waiting until a call of this browser is over'));
      const patience = { signal: ended.signal, onWait };
      sendLong('call', path('servers', name, 'read'), { uri }, patience).then(
        ({ result }) => replace(place, resourceResult(result)),
        (problem) => replace(place, problemBox(problem)),
      );
      return [said(uri, { tag: 'p', class: 'mono faint', limit: 400 }), place];
    },
    { class: 'broad' },
  ).finally(() => ended.abort());
}

const words = (item) =>
  said(item.title ?? item.name ?? item.uri ?? item.uriTemplate, { class: 'strong', limit: 160 });

function resourceLine(name, item) {
  const facts = [item.mimeType && plain(item.mimeType, 60), typeof item.size === 'number' && bytes(item.size)]
    .filter(Boolean)
    .join(', ');
  return h(
    'li',
    { class: 'item' },
    icon('file'),
    h(
      'div',
      { class: 'grow' },
      h('p', null, words(item), facts && h('span', { class: 'faint small' }, ` ${facts}`)),
      said(item.uri, { tag: 'p', class: 'mono small faint', limit: 200 }),
      item.description && said(item.description, { tag: 'p', class: 'small', limit: 300 }),
    ),
    button('Read', {
      kind: 'small',
      'aria-label': `Read ${plain(item.title ?? item.name ?? item.uri, 80)}`,
      on: { click: () => read(name, item.uri) },
    }),
  );
}

/** The variables of a URI template (RFC 6570), each once. */
const variables = (template) =>
  [
    ...new Set(
      [...String(template).matchAll(/\{[+#./;?&]?([^{}]*)\}/g)]
        .flatMap(([, list]) => list.split(','))
        .map((one) => one.replace(/[*:].*$/, '')),
    ),
  ]
    .filter(Boolean)
    .slice(0, 20);

/** The template with its variables filled in; only what templates of servers use in practice. */
function expanded(template, values) {
  return String(template).replace(/\{([+#./;?&]?)([^{}]*)\}/g, (_, operator, list) => {
    const names = list
      .split(',')
      .map((one) => one.replace(/[*:].*$/, ''))
      .filter((name) => values.get(name));
    const text = (name) => values.get(name).toWellFormed();
    const encode = operator === '+' || operator === '#' ? encodeURI : encodeURIComponent;
    if (operator === '?' || operator === '&')
      return names.length === 0
        ? ''
        : operator + names.map((name) => `${name}=${encode(text(name))}`).join('&');
    const [lead, between] = {
      '': ['', ','],
      '+': ['', ','],
      '#': ['#', ','],
      '.': ['.', '.'],
      '/': ['/', '/'],
      ';': [';', ';'],
    }[operator];
    return names.length === 0 ? '' : lead + names.map((name) => encode(text(name))).join(between);
  });
}

function templateLine(name, item) {
  const inputs = variables(item.uriTemplate).map((variable) => [
    variable,
    h('input', { class: 'input', autocomplete: 'off', spellcheck: 'false' }),
  ]);
  const form = h(
    'form',
    { class: 'row' },
    inputs.map(([variable, input]) =>
      h('label', null, h('span', { class: 'label' }, plain(variable, 60)), input),
    ),
    h('button', { type: 'submit', class: 'button small' }, 'Read'),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    read(
      name,
      expanded(item.uriTemplate, new Map(inputs.map(([variable, input]) => [variable, input.value]))),
    );
  });
  return h(
    'li',
    { class: 'item' },
    icon('file'),
    h(
      'div',
      { class: 'grow' },
      h('p', null, words(item)),
      said(item.uriTemplate, { tag: 'p', class: 'mono small faint', limit: 200 }),
      item.description && said(item.description, { tag: 'p', class: 'small', limit: 300 }),
      form,
    ),
  );
}

function section(title, items, line) {
  if (items.length === 0) return null;
  return h(
    'section',
    { 'aria-label': title },
    h('h2', { class: 'section-title' }, title, h('span', { class: 'count' }, String(items.length))),
    h('ul', { class: 'items card' }, items.slice(0, MAX_SHOWN).map(line)),
    items.length > MAX_SHOWN &&
      h('p', { class: 'faint' }, `${plural(items.length - MAX_SHOWN, 'more is', 'more are')} not shown.`),
  );
}

export function showResources(panel, context) {
  const { name } = context;
  showOffers(panel, context, {
    kind: 'resources',
    picture: 'file',
    nothing: 'No resources',
    show(answer) {
      const resources = Array.isArray(answer?.resources) ? answer.resources : [];
      const templates = Array.isArray(answer?.templates) ? answer.templates : [];
      if (resources.length + templates.length === 0) return null;
      return [
        section('Resources', resources, (item) => resourceLine(name, item)),
        section('Templates', templates, (item) => templateLine(name, item)),
      ];
    },
  });
}
