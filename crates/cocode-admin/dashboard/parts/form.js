// A form for the schema of a server: fields where the schema is simple enough, JSON where it is not.
import { button, h, put, replace, uniqueId } from '../lib/dom.js';
import { lost } from '../lib/kept.js';
import { own, readForm } from '../lib/schema.js';
import { plain, said } from '../lib/text.js';
import {
  ABSENT,
  booleanControl,
  choiceControl,
  choicesControl,
  numberControl,
  textControl,
} from './fields.js';
import { frame, pairs, variants } from './form-groups.js';
import { icon } from './icons.js';
import { jsonControl } from './json-field.js';

const MAX_ROWS = 100;

const SINGLE = new Map([
  ['string', textControl],
  ['number', numberControl],
  ['boolean', booleanControl],
  ['choice', choiceControl],
  ['choices', choicesControl],
  ['json', jsonControl],
]);

/** What a field expects, in a few words. */
function expectation(field) {
  const words = [];
  if (field.kind === 'number') {
    const { range } = field;
    if (range.get('minimum') !== undefined && range.get('maximum') !== undefined)
      words.push(`${range.get('minimum')} to ${range.get('maximum')}`);
    else if (range.get('minimum') !== undefined) words.push(`at least ${range.get('minimum')}`);
    else if (range.get('maximum') !== undefined) words.push(`at most ${range.get('maximum')}`);
  }
  if (field.kind === 'json') words.push('JSON');
  if (field.pattern) words.push(`must match ${plain(field.pattern, 100)}`);
  if (field.format && !['email', 'uri', 'date', 'date-time'].includes(field.format))
    words.push(plain(field.format, 40));
  return words.join(', ');
}

function kindOf(field) {
  if (field.kind === 'number') return field.isInteger ? 'integer' : 'number';
  if (field.kind === 'choice') return 'choice';
  if (field.kind === 'choices' || field.kind === 'list') return 'list';
  return field.kind;
}

/** A single value with its name, its description and what is wrong with it. */
function labelled(field, report) {
  const id = uniqueId('field');
  const hintId = `${id}-hint`;
  const problemId = `${id}-problem`;
  const control = SINGLE.get(field.kind)(field, { id, describedBy: `${hintId} ${problemId}` });
  const input =
    control.area ??
    (control.node.matches('input, select, textarea') ? control.node : control.node.querySelector('input'));
  const problem = h('p', { id: problemId, class: 'problem' });
  const expects = expectation(field);
  const name = field.title ?? field.key;
  const isGroup = field.kind === 'choices';
  const head = h(
    isGroup ? 'span' : 'label',
    { class: 'field-name', for: isGroup ? null : id },
    h('span', { dir: 'auto' }, plain(name, 80) || 'Value'),
    field.isRequired && h('span', { class: 'needed' }, ' required'),
  );
  const side = h(
    'span',
    { class: 'field-kind' },
    [field.title && field.title !== field.key ? plain(field.key, 60) : null, kindOf(field)]
      .filter(Boolean)
      .join(' · '),
  );
  const hint = h(
    'div',
    { id: hintId, class: 'field-hint' },
    field.description && said(field.description, { limit: 400 }),
    expects && h('span', { class: 'expects' }, expects),
    field.note && h('span', { class: 'expects' }, field.note),
  );
  const node = h(
    'div',
    { class: `field field-${input?.matches('.switch') ? 'switch' : field.kind}` },
    h('div', { class: 'field-head' }, head, side),
    control.node,
    hint,
    problem,
  );
  const complain = (message) => {
    problem.textContent = message ?? '';
    put(input ?? control.node, 'aria-invalid', message ? 'true' : null);
  };
  node.addEventListener('input', () => complain(null));
  return {
    node,
    focus: control.focus,
    write: control.write,
    read() {
      let wrong = null;
      const value = control.read((message) => {
        wrong ??= message;
      });
      if (wrong === null && value === ABSENT && field.isRequired) wrong = 'This is needed.';
      complain(wrong);
      if (wrong !== null) report({ name, focus: control.focus, message: wrong });
      return value;
    },
  };
}

function list(field, report) {
  const rows = h('div', { class: 'rows' });
  const controls = [];
  const add = (value) => {
    if (controls.length >= Math.min(MAX_ROWS, field.size.max ?? MAX_ROWS)) return null;
    const control = build(
      {
        ...field.item,
        isRequired: true,
        title: field.item.title ?? `${field.title ?? field.key} ${controls.length + 1}`,
        key: field.item.key || field.key,
      },
      report,
    );
    const row = h(
      'div',
      { class: 'row-item' },
      control.node,
      h(
        'button',
        {
          type: 'button',
          class: 'button quiet square',
          'aria-label': `Remove ${plain(field.item.title ?? field.key, 60)}`,
          on: {
            click: () => {
              controls.splice(controls.indexOf(control), 1);
              row.remove();
              more.focus();
            },
          },
        },
        icon('cross'),
      ),
    );
    controls.push(control);
    rows.append(row);
    if (value !== undefined) control.write(value);
    return control;
  };
  const more = button('Add', {
    icon: icon('plus'),
    kind: 'small',
    'aria-label': `Add to ${plain(field.title ?? field.key, 60)}`,
    on: { click: () => add()?.focus() },
  });
  const problem = h('p', { class: 'problem' });
  const node = frame(field, false, rows, problem, more);
  for (let at = 0; at < Math.min(field.size.min, 5); at += 1) add();
  return {
    node,
    focus: () => (controls[0] ?? more).focus(),
    write(values) {
      controls.length = 0;
      replace(rows);
      for (const value of Array.isArray(values) ? values.slice(0, MAX_ROWS) : []) add(value);
    },
    read() {
      if (controls.length === 0 && !field.isRequired) return ABSENT;
      const values = controls.map((control) => control.read()).filter((value) => value !== ABSENT);
      const { min, max } = field.size;
      const wrong =
        values.length < min
          ? `At least ${min} are needed.`
          : max !== undefined && values.length > max
            ? `At most ${max} are allowed.`
            : null;
      problem.textContent = wrong ?? '';
      if (wrong) report({ name: field.title ?? field.key, focus: () => more.focus(), message: wrong });
      return values;
    },
  };
}

/** Fields that are known, and if the schema lets it others, whose names are filled in, too. */
function object(field, report, { isRoot = false } = {}) {
  let isTouched = isRoot || field.isRequired;
  const children = field.fields.map((child) => ({
    key: child.key,
    child: build(child, (wrong) => {
      if (isTouched) report(wrong);
    }),
  }));
  const more =
    field.more &&
    pairs({ key: 'more', title: 'More values', item: field.more, isRequired: false }, report, build, {
      taken: new Set(children.map(({ key }) => key)),
    });
  // What only tells this kind of object from others was chosen with the kind.
  const isGiven = ({ kind, options, isRequired }) => kind === 'choice' && options.length === 1 && isRequired;
  if (field.isBare === true)
    children.forEach(({ child }, index) => put(child.node, 'hidden', isGiven(field.fields[index])));
  const body = children.map(({ child }) => child.node);
  const node = frame(field, isRoot || field.isBare === true, body, more?.node);
  node.addEventListener('input', () => {
    isTouched = true;
  });
  return {
    node,
    focus: () => children[0]?.child.focus(),
    write(value) {
      if (typeof value !== 'object' || value === null) return;
      isTouched = true;
      for (const { key, child } of children) {
        const found = own(value, key);
        if (found !== undefined && found !== null) child.write(found);
      }
      more?.write(value);
    },
    read() {
      if (!isTouched) return ABSENT;
      // Without a prototype, so that no name of a server means anything here.
      const value = Object.create(null);
      for (const { key, child } of children) {
        const part = child.read();
        if (part !== ABSENT) value[key] = part;
      }
      const others = more?.read() ?? ABSENT;
      if (others !== ABSENT) for (const key of Object.keys(others)) value[key] = others[key];
      return Object.keys(value).length === 0 && !field.isRequired ? ABSENT : value;
    },
  };
}

const GROUPS = new Map([
  ['object', object],
  ['list', list],
  ['variants', (field, report, options) => variants(field, report, build, options)],
  ['map', (field, report, options) => pairs(field, report, build, options)],
]);

function build(field, report) {
  const control = (GROUPS.get(field.kind) ?? labelled)(field, report, { isRoot: field.isBare === true });
  if (field.initial !== undefined && field.initial !== null) control.write(field.initial);
  return control;
}

/**
 * The form of a schema: `{ node, read(), focus() }`. `read` gives the value as an object, or null if something is wrong,
 * which then is said and has the focus. Whoever prefers JSON can switch.
 */
export function schemaForm(schema, { initial, name = 'Arguments' } = {}) {
  const form = readForm(schema);
  let problems = [];
  const report = (problem) => problems.push(problem);
  const place = h('div');
  const summary = h('p', { class: 'problem', role: 'alert' });
  const note = h('p', { class: 'faint small', hidden: true });
  const canForm = form.kind !== 'json';
  const isEmpty = form.kind === 'object' && form.fields.length === 0 && !form.more;
  let isForm = canForm;
  let fields = null;
  const json = jsonControl(
    { schema: form.schema },
    { mustBeObject: true, rows: 6, label: `${name} as JSON` },
  );
  const show = (value) => {
    if (isForm) {
      fields = GROUPS.get(form.kind)(form, report, { isRoot: true });
      if (isEmpty) fields.node.append(h('p', { class: 'faint' }, 'Nothing has to be filled in.'));
      if (form.initial !== undefined) fields.write(form.initial);
      if (value !== undefined) fields.write(value);
      replace(place, fields.node);
    } else {
      json.write(value ?? {});
      replace(place, json.node);
    }
    for (const [way, press] of ways) put(press, 'aria-pressed', String((way === 'form') === isForm));
  };
  const current = () => {
    problems = [];
    const value = isForm
      ? fields.read()
      : json.read((message) => report({ name, focus: json.focus, message }));
    return value === ABSENT ? Object.create(null) : value;
  };
  const turn = (toForm) => {
    if (toForm === isForm) return;
    const value = current();
    if (toForm && problems.length > 0) return;
    const missing = toForm ? unshown(value) : null;
    if (missing !== null) {
      const where = missing === '' ? 'this' : `“${plain(missing, 80)}”`;
      summary.textContent = `The form cannot show ${where} as it is, so it stays JSON.`;
      return;
    }
    isForm = toForm;
    summary.textContent = '';
    show(value);
  };
  /** What of a value a form would lose, as `lost` says it. */
  const unshown = (value) => {
    const trial = GROUPS.get(form.kind)(form, () => {}, { isRoot: true });
    trial.write(value);
    const kept = trial.read();
    return lost(value, kept === ABSENT ? {} : kept);
  };
  const ways = new Map([
    ['form', h('button', { type: 'button', class: 'segment', on: { click: () => turn(true) } }, 'Form')],
    ['json', h('button', { type: 'button', class: 'segment', on: { click: () => turn(false) } }, 'JSON')],
  ]);
  if (form.note) {
    note.hidden = false;
    note.textContent = `${form.note} Write JSON.`;
  }
  if (canForm && initial !== undefined && unshown(initial) !== null) isForm = false;
  show(initial);
  return {
    node: h(
      'div',
      { class: 'schema-form' },
      h(
        'div',
        { class: 'form-head' },
        h('h3', null, name),
        canForm &&
          h(
            'div',
            { class: 'segments', role: 'group', 'aria-label': `How to write the ${name.toLowerCase()}` },
            [...ways.values()],
          ),
      ),
      note,
      place,
      summary,
    ),
    /** Whether nothing can be filled in. */
    isEmpty,
    focus: () => (isForm ? fields : json).focus(),
    read() {
      const value = current();
      summary.textContent = problems.length > 1 ? `${problems.length} fields need another look.` : '';
      problems[0]?.focus();
      return problems.length > 0 ? null : value;
    },
  };
}
