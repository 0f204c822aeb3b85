// Parts of a form whose fields are not all known beforehand: one of several kinds of objects, and pairs of names and
// values. `build(field, report)` makes the control of a field.
import { button, h, put, replace, uniqueId } from '../lib/dom.js';
import { misfits } from '../lib/check.js';
import { own } from '../lib/schema.js';
import { plain, said } from '../lib/text.js';
import { ABSENT } from './fields.js';
import { icon } from './icons.js';

const MAX_PAIRS = 100;

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The frame of fields that belong together, or no frame at all for a form as a whole. */
export function frame(field, isRoot, ...children) {
  if (isRoot) return h('div', { class: 'fields' }, children);
  return h(
    'fieldset',
    { class: 'group' },
    h(
      'legend',
      null,
      plain(field.title ?? field.key, 80) || 'Values',
      field.isRequired && h('span', { class: 'needed' }, ' required'),
    ),
    field.description && said(field.description, { tag: 'p', class: 'field-hint', limit: 400 }),
    children,
  );
}

/** A choice among kinds of objects, and the fields of the one that is chosen. */
export function variants(field, report, build, { isRoot = false } = {}) {
  const id = uniqueId('variant');
  const isNeeded = isRoot || field.isRequired;
  const select = h(
    'select',
    { id, class: 'input variant' },
    !isNeeded && h('option', { value: '' }, 'Not given'),
    field.variants.map(({ label }, index) => h('option', { value: String(index) }, plain(label, 100))),
  );
  const words = h('div', { class: 'field-hint' });
  const place = h('div', { class: 'fields' });
  let control = null;
  const choose = (index, value) => {
    select.value = index === null ? '' : String(index);
    const chosen = index === null ? null : field.variants[index].field;
    control = chosen && build({ ...chosen, isRequired: true, isBare: true, description: undefined }, report);
    replace(words, chosen?.description && said(chosen.description, { limit: 400 }));
    replace(place, control?.node);
    if (control && value !== undefined) control.write(value);
  };
  select.addEventListener('change', () => {
    // What was filled in stays where the other kind has a field for it.
    const before = control?.read();
    const values = isObject(before) ? before : undefined;
    choose(select.value === '' ? null : Number(select.value), values);
  });
  choose(isNeeded ? 0 : null);
  return {
    node: frame(
      field,
      isRoot,
      h(
        'div',
        { class: 'field' },
        h('div', { class: 'field-head' }, h('label', { class: 'field-name', for: id }, 'Which kind')),
        select,
        words,
      ),
      place,
    ),
    focus: () => select.focus(),
    write(value) {
      const fits = ({ field: one }) => misfits(value, one.schema, field.root).length === 0;
      const fitting = field.variants.findIndex(fits);
      choose(fitting >= 0 ? fitting : isNeeded ? Number(select.value) : 0, value);
    },
    read: () => (control === null ? ABSENT : control.read()),
  };
}

/** Pairs of names and values. `taken` are names that have fields of their own. */
export function pairs(field, report, build, { isRoot = false, taken = new Set() } = {}) {
  const rows = h('div', { class: 'rows' });
  const problem = h('p', { class: 'problem' });
  const name = plain(field.title ?? field.key, 60) || 'values';
  const all = [];
  const add = (key = '', value = undefined) => {
    if (all.length >= MAX_PAIRS) return null;
    const id = uniqueId('name');
    const input = h('input', {
      id,
      class: 'input',
      type: 'text',
      value: key,
      autocomplete: 'off',
      spellcheck: 'false',
    });
    const control = build({ ...field.item, isRequired: true, title: field.item.title ?? 'Value' }, report);
    const pair = { input, control };
    const node = h(
      'div',
      { class: 'row-item' },
      h(
        'div',
        { class: 'named-value' },
        h(
          'div',
          { class: 'field' },
          h('div', { class: 'field-head' }, h('label', { class: 'field-name', for: id }, 'Name')),
          input,
        ),
        control.node,
      ),
      h(
        'button',
        {
          type: 'button',
          class: 'button quiet square',
          'aria-label': `Remove one of ${name}`,
          on: {
            click: () => {
              all.splice(all.indexOf(pair), 1);
              node.remove();
              more.focus();
            },
          },
        },
        icon('cross'),
      ),
    );
    input.addEventListener('input', () => {
      problem.textContent = '';
      put(input, 'aria-invalid', null);
    });
    all.push(pair);
    rows.append(node);
    if (value !== undefined) control.write(value);
    return pair;
  };
  const more = button('Add', {
    icon: icon('plus'),
    kind: 'small',
    'aria-label': `Add to ${name}`,
    on: { click: () => add()?.input.focus() },
  });
  /** What is wrong with a name, if something is. */
  const wrongAbout = (key, seen) => {
    if (key === '') return 'Every value needs a name.';
    if (seen.has(key)) return 'Two values have the same name.';
    return taken.has(key) ? `“${plain(key, 60)}” has a field of its own.` : null;
  };
  return {
    node: frame(field, isRoot, rows, problem, h('div', null, more)),
    focus: () => (all[0]?.input ?? more).focus(),
    write(value) {
      if (!isObject(value)) return;
      all.length = 0;
      replace(rows);
      const names = Object.keys(value).filter((key) => !taken.has(key));
      for (const key of names.slice(0, MAX_PAIRS)) add(key, own(value, key) ?? undefined);
    },
    read() {
      problem.textContent = '';
      if (all.length === 0 && !field.isRequired && !isRoot) return ABSENT;
      // Without a prototype, so that no name means anything here.
      const value = Object.create(null);
      for (const { input, control } of all) {
        const key = input.value;
        const wrong = wrongAbout(key, new Set(Object.keys(value)));
        put(input, 'aria-invalid', wrong ? 'true' : null);
        if (wrong) {
          problem.textContent = wrong;
          report({ name, focus: () => input.focus(), message: wrong });
        }
        const given = control.read();
        if (!wrong && given !== ABSENT) value[key] = given;
      }
      return value;
    },
  };
}
