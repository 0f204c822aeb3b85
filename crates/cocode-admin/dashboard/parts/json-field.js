// Text that has to be JSON: says where it is wrong, and what about it does not fit its schema.
import { h, replace, uniqueId } from '../lib/dom.js';
import { misfits } from '../lib/check.js';
import { plain, pretty, visible } from '../lib/text.js';
import { ABSENT } from './fields.js';

const PAUSE_MS = 250;
const MAX_CHARACTERS = 2_000_000;

/** What the browser says about broken JSON, and where. */
function brokenAt(text, error) {
  const position = /position (\d+)/.exec(error.message)?.[1];
  if (position === undefined) return `This is not JSON: ${error.message}`;
  const before = text.slice(0, Number(position)).split('\n');
  return `This is not JSON: something is wrong in line ${before.length}, column ${before.at(-1).length + 1}.`;
}

/** `mustBeObject`: for arguments as a whole. */
export function jsonControl(
  field,
  { id = uniqueId('json'), describedBy, mustBeObject = false, rows = 3, label } = {},
) {
  const messagesId = uniqueId('messages');
  const area = h('textarea', {
    id,
    class: 'input mono json',
    rows: String(rows),
    spellcheck: 'false',
    autocomplete: 'off',
    autocapitalize: 'off',
    'aria-describedby': [describedBy, messagesId].filter(Boolean).join(' '),
    'aria-label': label ?? null,
  });
  const messages = h('ul', { id: messagesId, class: 'messages', role: 'status' });
  let timer = null;
  const parse = () => {
    const text = area.value.trim();
    if (text === '') return { isAbsent: true };
    if (text.length > MAX_CHARACTERS) return { problem: 'This is too long.' };
    try {
      const value = JSON.parse(text);
      if (mustBeObject && (typeof value !== 'object' || value === null || Array.isArray(value)))
        return { problem: 'This must be a JSON object: { … }' };
      return { value };
    } catch (error) {
      return { problem: brokenAt(area.value, error) };
    }
  };
  const judge = () => {
    const { value, problem, isAbsent } = parse();
    const found = isAbsent
      ? []
      : problem
        ? [h('li', { class: 'bad' }, problem)]
        : misfits(value, field.schema).map(({ path, message }) =>
            h('li', { class: 'warn' }, h('b', null, visible(plain(path, 120))), ` ${message}`),
          );
    area.setAttribute('aria-invalid', String(Boolean(problem)));
    replace(messages, found);
  };
  area.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(judge, PAUSE_MS);
  });
  return {
    node: h('div', { class: 'json-field' }, area, messages),
    area,
    focus: () => area.focus(),
    write(value) {
      area.value = pretty(value);
      judge();
    },
    read(report) {
      const { value, problem, isAbsent } = parse();
      judge();
      if (problem) report(problem);
      return isAbsent || problem ? ABSENT : value;
    },
  };
}
