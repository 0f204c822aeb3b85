// Rows of a name and a value each: environment variables, headers.
import { button, h, replace } from '../lib/dom.js';
import { icon } from './icons.js';

const MAX_PAIRS = 100;

/** `{ node, read(), write(pairs) }`; `one` names a row, as `variable`. */
export function pairsField(title, one, { namePlaceholder, valuePlaceholder, hint }) {
  const rows = h('div', { class: 'rows' });
  const add = (name = '', value = '') => {
    if (rows.children.length >= MAX_PAIRS) return null;
    const number = rows.children.length + 1;
    const key = h('input', {
      class: 'input mono',
      value: name,
      placeholder: namePlaceholder,
      'aria-label': `Name of ${one} ${number}`,
      autocomplete: 'off',
      spellcheck: 'false',
      'data-part': 'name',
    });
    const content = h('input', {
      class: 'input mono',
      value,
      placeholder: valuePlaceholder,
      'aria-label': `Value of ${one} ${number}`,
      autocomplete: 'off',
      spellcheck: 'false',
      'data-part': 'value',
    });
    const row = h(
      'div',
      { class: 'pair' },
      key,
      content,
      h(
        'button',
        {
          type: 'button',
          class: 'button quiet square',
          'aria-label': `Remove ${one} ${number}`,
          on: {
            click: () => {
              row.remove();
              more.focus();
            },
          },
        },
        icon('cross'),
      ),
    );
    rows.append(row);
    return key;
  };
  const more = button(`Add ${one}`, {
    icon: icon('plus'),
    kind: 'small',
    on: { click: () => add()?.focus() },
  });
  return {
    node: h(
      'fieldset',
      { class: 'group' },
      h('legend', null, title),
      hint && h('p', { class: 'field-hint' }, hint),
      rows,
      more,
    ),
    write(pairs) {
      replace(rows);
      for (const [name, value] of pairs) add(name, value);
    },
    read() {
      // Without a prototype, so that no name means anything here.
      const found = Object.create(null);
      for (const row of rows.children) {
        const name = row.querySelector('[data-part="name"]').value.trim();
        if (name !== '') found[name] = row.querySelector('[data-part="value"]').value;
      }
      return found;
    },
  };
}
