// Controls for single values of a form: texts, numbers, switches, choices.
//
// A control is `{ node, focus(), read(report), write(value) }`. `read` gives the value, or ABSENT if nothing is filled
// in, and calls `report(message)` for what is wrong.
import { h, uniqueId } from '../lib/dom.js';
import { plain } from '../lib/text.js';

/** Nothing is filled in. */
export const ABSENT = Symbol('absent');

/** Beyond so many options a list is not chosen from but typed, with suggestions. */
const MAX_SELECT = 100;
const MAX_SUGGESTIONS = 500;

const LONG_TEXT =
  /(^|_)(body|content|contents|text|code|query|sql|message|prompt|script|html|markdown|summary|notes?|description)$/i;
const INPUT_TYPES = new Map([
  ['email', 'email'],
  ['uri', 'url'],
  ['url', 'url'],
  ['date', 'date'],
  ['date-time', 'datetime-local'],
  ['password', 'password'],
]);

const label = (value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null'));

/** `2026-03-01T10:00` in the zone of this machine, as inputs want it. */
function toLocal(value) {
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function isAddress(text) {
  return URL.canParse(text);
}

/** What about a text does not fit. Patterns are shown and not evaluated: a pattern of a server can take for ever. */
function textProblem(text, { length, format }) {
  const size = [...text].length;
  if (length.min !== undefined && size < length.min) return `At least ${length.min} characters are needed.`;
  if (length.max !== undefined && size > length.max) return `At most ${length.max} characters are allowed.`;
  if (format === 'email' && !/^[^\s@]+@[^\s@]+$/.test(text)) return 'This must be an e-mail address.';
  if ((format === 'uri' || format === 'url') && !isAddress(text))
    return 'This must be a whole address, as https://example.com.';
  return null;
}

export function textControl(field, { id, describedBy }) {
  const isLong =
    !field.format &&
    (field.length.max ?? Infinity) > 120 &&
    (LONG_TEXT.test(field.key) || field.length.max > 250 || String(field.initial ?? '').includes('\n'));
  const type = INPUT_TYPES.get(field.format) ?? 'text';
  const common = {
    id,
    class: 'input',
    'aria-describedby': describedBy,
    'aria-required': field.isRequired ? 'true' : null,
    autocomplete: 'off',
    spellcheck: 'false',
    name: plain(field.key, 80),
  };
  const node = isLong ? h('textarea', { ...common, rows: '2' }) : h('input', { ...common, type });
  return {
    node,
    focus: () => node.focus(),
    write(value) {
      node.value = type === 'datetime-local' ? toLocal(value) : label(value);
    },
    read(report) {
      const text = node.value;
      if (node.validity.badInput) report('This is not complete.');
      // What is needed may still be empty, if the schema lets it.
      if (text === '') return field.isRequired && !(field.length.min > 0) && type === 'text' ? '' : ABSENT;
      const problem = textProblem(text, field);
      if (problem) report(problem);
      return type === 'datetime-local' ? new Date(text).toISOString() : text;
    },
  };
}

function numberProblem(value, { isInteger, range }) {
  if (isInteger && !Number.isInteger(value)) return 'This must be a whole number.';
  if (isInteger && !Number.isSafeInteger(value)) return 'This number is too large to be sent exactly.';
  if (value < range.get('minimum')) return `This must be at least ${range.get('minimum')}.`;
  if (value > range.get('maximum')) return `This must be at most ${range.get('maximum')}.`;
  if (value <= range.get('exclusiveMinimum'))
    return `This must be more than ${range.get('exclusiveMinimum')}.`;
  if (value >= range.get('exclusiveMaximum'))
    return `This must be less than ${range.get('exclusiveMaximum')}.`;
  const step = range.get('multipleOf');
  if (step > 0 && Math.abs(value / step - Math.round(value / step)) > 1e-9)
    return `This must be a multiple of ${step}.`;
  return null;
}

export function numberControl(field, { id, describedBy }) {
  const { range, isInteger } = field;
  const node = h('input', {
    id,
    class: 'input number',
    type: 'number',
    inputmode: isInteger ? 'numeric' : 'decimal',
    step: isInteger ? '1' : 'any',
    min: range.get('minimum'),
    max: range.get('maximum'),
    'aria-describedby': describedBy,
    'aria-required': field.isRequired ? 'true' : null,
    autocomplete: 'off',
    name: plain(field.key, 80),
  });
  return {
    node,
    focus: () => node.focus(),
    write(value) {
      node.value = String(value);
    },
    read(report) {
      if (node.validity.badInput) report('This must be a number.');
      if (node.value === '') return ABSENT;
      const value = Number(node.value);
      const problem = numberProblem(value, field);
      if (problem) report(problem);
      return value;
    },
  };
}

/** A switch where there is a default; otherwise “not given” is a third answer. */
export function booleanControl(field, { id, describedBy }) {
  if (field.isRequired || typeof field.initial === 'boolean') {
    const node = h('input', {
      id,
      type: 'checkbox',
      class: 'switch',
      role: 'switch',
      'aria-describedby': describedBy,
      name: plain(field.key, 80),
    });
    return {
      node,
      focus: () => node.focus(),
      write: (value) => {
        node.checked = value === true;
      },
      read: () => node.checked,
    };
  }
  return choiceControl(
    {
      ...field,
      options: [
        { value: true, label: 'Yes' },
        { value: false, label: 'No' },
      ],
    },
    { id, describedBy },
  );
}

function typedChoice(field, { id, describedBy }) {
  const values = new Map(field.options.map((option) => [option.label ?? label(option.value), option.value]));
  const listId = uniqueId('options');
  const node = h('input', {
    id,
    class: 'input',
    type: 'text',
    list: listId,
    autocomplete: 'off',
    spellcheck: 'false',
    'aria-describedby': describedBy,
    'aria-required': field.isRequired ? 'true' : null,
  });
  const list = h(
    'datalist',
    { id: listId },
    [...values.keys()].slice(0, MAX_SUGGESTIONS).map((name) => h('option', { value: name })),
  );
  return {
    node: h('div', { class: 'typed-choice' }, node, list),
    focus: () => node.focus(),
    write(value) {
      const found = [...values].find(([, one]) => JSON.stringify(one) === JSON.stringify(value));
      if (found) [node.value] = found;
    },
    read(report) {
      if (node.value === '') return ABSENT;
      if (values.has(node.value)) return values.get(node.value);
      report(`This must be one of ${values.size} values; type to see suggestions.`);
      return ABSENT;
    },
  };
}

export function choiceControl(field, { id, describedBy }) {
  if (field.options.length > MAX_SELECT) return typedChoice(field, { id, describedBy });
  const { options } = field;
  const isOnly = options.length === 1 && field.isRequired;
  const node = h(
    'select',
    {
      id,
      class: 'input',
      'aria-describedby': describedBy,
      'aria-required': field.isRequired ? 'true' : null,
      name: plain(field.key, 80),
    },
    !isOnly && h('option', { value: '' }, field.isRequired ? 'Choose…' : 'Not given'),
    options.map((option, index) =>
      h('option', { value: String(index) }, plain(option.label ?? label(option.value), 120)),
    ),
  );
  return {
    node,
    focus: () => node.focus(),
    write(value) {
      const index = options.findIndex((option) => JSON.stringify(option.value) === JSON.stringify(value));
      if (index >= 0) node.value = String(index);
    },
    read: () => (node.value === '' ? ABSENT : options[Number(node.value)].value),
  };
}

/** Several of some options. */
export function choicesControl(field, { describedBy }) {
  const boxes = field.options.map((option) => {
    const box = h('input', { type: 'checkbox', class: 'tick' });
    return {
      box,
      value: option.value,
      node: h(
        'label',
        { class: 'check' },
        box,
        h('span', null, plain(option.label ?? label(option.value), 120)),
      ),
    };
  });
  const { min, max } = field.size;
  return {
    node: h(
      'div',
      {
        class: 'checks',
        role: 'group',
        'aria-label': plain(field.title ?? field.key, 80),
        'aria-describedby': describedBy,
      },
      boxes.map(({ node }) => node),
    ),
    focus: () => boxes[0]?.box.focus(),
    write(values) {
      const wanted = new Set((Array.isArray(values) ? values : []).map((value) => JSON.stringify(value)));
      for (const { box, value } of boxes) box.checked = wanted.has(JSON.stringify(value));
    },
    read(report) {
      const chosen = boxes.filter(({ box }) => box.checked).map(({ value }) => value);
      if (chosen.length === 0 && !field.isRequired) return ABSENT;
      if (chosen.length < min) report(`Choose at least ${min}.`);
      if (max !== undefined && chosen.length > max) report(`Choose at most ${max}.`);
      return chosen;
    },
  };
}
