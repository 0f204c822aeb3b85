#!/usr/bin/env node
// Has the dashboard make forms of schemas, kind ones and hostile ones, and fills them in. Needs no server: the modules
// of the page are used as they are, with schemas that are made up here.
import { must, say, scenario } from './drive.mjs';

const object = (properties, required = []) => ({ type: 'object', properties, required });

const KINDS = object(
  {
    text: { type: 'string', minLength: 2, maxLength: 10 },
    mail: { type: 'string', format: 'email' },
    day: { type: 'string', format: 'date' },
    ratio: { type: 'number', minimum: 0, maximum: 1, default: 0.5 },
    count: { type: 'integer', exclusiveMinimum: 0 },
    flag: { type: 'boolean' },
    sure: { type: 'boolean', default: true },
    color: { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] },
    level: {
      oneOf: [
        { const: 1, title: 'Low' },
        { const: 2, title: 'High' },
      ],
    },
    maybe: { anyOf: [{ type: 'integer' }, { type: 'null' }], default: null },
    anything: {},
    place: object({ city: { type: 'string' } }, ['city']),
  },
  ['text', 'color'],
);

/** Puts a form of a schema into the page, in the place of the one before, and says what it is. */
async function show(page, schema) {
  await page.evaluate(async (text) => {
    const { schemaForm } = await import(new URL('parts/form.js', document.baseURI).href);
    const began = performance.now();
    globalThis.tested = schemaForm(JSON.parse(text), { name: 'Tested' });
    document.querySelector('main').replaceChildren(globalThis.tested.node);
    globalThis.took = performance.now() - began;
  }, JSON.stringify(schema));
  return page.evaluate(() => {
    const { node } = globalThis.tested;
    const controls = node.querySelectorAll('input, select, textarea').length;
    return {
      controls,
      isForm: node.querySelector('.fields') !== null,
      note: node.querySelector('p.faint:not([hidden])')?.textContent ?? '',
    };
  });
}

/** What the form gives: the value, or null and what is wrong. */
const read = (page) =>
  page.evaluate(() => {
    const value = globalThis.tested.read();
    const problems = [...globalThis.tested.node.querySelectorAll('.problem, .messages .bad')]
      .map((one) => one.textContent)
      .filter(Boolean);
    return {
      value: value === null ? null : JSON.parse(JSON.stringify(value)),
      text: JSON.stringify(value),
      problems,
    };
  });

const field = (page, name) => page.locator(`[name="${name}"]`);

async function kindOnes(page) {
  await show(page, KINDS);
  const empty = await read(page);
  must(
    empty.value === null && empty.problems.length === 3,
    `an empty form says ${JSON.stringify(empty.problems)}`,
  );
  await field(page, 'text').fill('x');
  await field(page, 'mail').fill('nobody');
  await field(page, 'ratio').fill('2');
  await field(page, 'count').fill('0');
  await field(page, 'color').selectOption({ label: 'Green' });
  const wrong = await read(page);
  must(
    wrong.value === null && wrong.problems.length === 5,
    `wrong values say ${JSON.stringify(wrong.problems)}`,
  );
  must(
    await page.evaluate(() => document.activeElement.name === 'text'),
    'the first wrong field does not have the focus',
  );
  await field(page, 'text').fill('hello');
  await field(page, 'mail').fill('ada@example.com');
  await field(page, 'day').fill('2026-03-01');
  await field(page, 'ratio').fill('0.25');
  await field(page, 'count').fill('3');
  await field(page, 'flag').selectOption({ label: 'No' });
  await field(page, 'level').selectOption({ label: 'High' });
  await field(page, 'city').fill('Oslo');
  await page.locator('.field-json textarea').fill('{"a": [1, null]}');
  const good = await read(page);
  const expected = {
    text: 'hello',
    color: 'g',
    mail: 'ada@example.com',
    day: '2026-03-01',
    ratio: 0.25,
    count: 3,
    flag: false,
    sure: true,
    level: 2,
    anything: { a: [1, null] },
    place: { city: 'Oslo' },
  };
  for (const [key, value] of Object.entries(expected))
    must(
      JSON.stringify(good.value?.[key]) === JSON.stringify(value),
      `${key} is ${JSON.stringify(good.value?.[key])}`,
    );
  must(!('maybe' in good.value), 'what was not given is sent');
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  await page.getByLabel('Tested as JSON').fill('{"text": 1, ');
  must((await read(page)).problems[0]?.startsWith('This is not JSON'), 'broken JSON is not said');
  await page.getByLabel('Tested as JSON').fill('{"text": 1, "color": "g"}');
  await page.locator('.messages .warn').filter({ hasText: 'text must be string' }).waitFor();
  must((await read(page)).value.text === 1, 'JSON is not sent as it is written');
  say('fields of every kind', good.value);
}

async function lists(page) {
  await show(
    page,
    object(
      {
        words: { type: 'array', items: { type: 'string', minLength: 1 }, maxItems: 2 },
        some: { type: 'array', minItems: 1, items: { enum: ['a', 'b'] } },
      },
      ['some'],
    ),
  );
  await page.getByRole('button', { name: 'Add to words' }).click();
  await page.getByRole('button', { name: 'Add to words' }).click();
  await page.getByRole('button', { name: 'Add to words' }).click();
  must((await page.locator('.row-item').count()) === 2, 'more rows than the schema allows');
  await page.locator('.row-item input').first().fill('one');
  await page.getByRole('button', { name: 'Remove words' }).last().click();
  must((await read(page)).problems[0] === 'Choose at least 1.', 'too few choices are not said');
  await page.getByLabel('b', { exact: true }).check();
  const { value } = await read(page);
  must(JSON.stringify(value) === '{"some":["b"],"words":["one"]}', JSON.stringify(value));
  say('lists', value);
}

async function hostileOnes(page) {
  const proto = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"string","default":"p"},"constructor":{"type":"string","default":"c"},"toString":{"type":"integer","default":1}},"required":["__proto__"]}',
  );
  await show(page, proto);
  const { text } = await read(page);
  must(text === '{"__proto__":"p","constructor":"c","toString":1}', text);
  must(
    await page.evaluate(
      () => ({}).p === undefined && Object.prototype.toString.call([]) === '[object Array]',
    ),
    'the page was changed',
  );
  say('names that mean something', { text });

  let deep = { type: 'string' };
  for (let level = 0; level < 2_000; level += 1) deep = object({ [`level${level}`]: deep });
  const many = object(
    Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`p${index}`, { type: 'string' }])),
  );
  const circle = { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } };
  const tree = {
    $ref: '#/$defs/node',
    $defs: {
      node: object({
        name: { type: 'string' },
        left: { $ref: '#/$defs/node' },
        right: { $ref: '#/$defs/node' },
      }),
    },
  };
  const choices = object({ one: { enum: Array.from({ length: 50_000 }, (_, index) => `option ${index}`) } });
  const slow = object({ text: { type: 'string', pattern: '^(a+)+$' } });
  const strange = [
    true,
    false,
    null,
    7,
    'text',
    [],
    { type: 'array' },
    { type: ['object', 'null'], properties: 3, required: 'all' },
    object({
      a: null,
      b: 1,
      c: [],
      d: { type: {} },
      e: { enum: {} },
      f: { anyOf: [] },
      g: { $ref: 7 },
      h: { type: 'string', default: {} },
      i: { type: 'integer', minimum: 'x', default: 'y' },
      j: { type: 'array', items: [], default: 5 },
    }),
  ];
  for (const [name, schema] of Object.entries({ deep, many, circle, tree, choices, slow })) {
    const shape = await show(page, schema);
    must(shape.controls < 400, `${name} has ${shape.controls} controls`);
    must(
      (await page.evaluate(() => globalThis.took)) < 3_000,
      `${name} took ${await page.evaluate(() => globalThis.took)} ms`,
    );
    say(name, shape);
  }
  await show(page, slow);
  await field(page, 'text').fill(`${'a'.repeat(40)}!`);
  must((await read(page)).value.text.endsWith('!'), 'a pattern was evaluated');
  for (const schema of strange) {
    await show(page, schema);
    await read(page);
  }
  say('strange schemas', { schemas: strange.length });
}

const number = { type: 'integer' };
const shape = (kind, size) =>
  object({ kind: { const: kind }, [size]: number, name: { type: 'string' } }, ['kind', size]);

/** Forms whose fields depend on what is chosen, or are named by whoever fills them in. */
async function shapes(page) {
  const expected = async (value, words) => {
    const got = await read(page);
    must(JSON.stringify(got.value) === JSON.stringify(value), `${words}: ${got.text} ${got.problems}`);
  };
  await show(page, { type: 'object', oneOf: [shape('circle', 'radius'), shape('square', 'side')] });
  const select = page.getByLabel('Which kind');
  must((await select.locator('option').allInnerTexts()).join() === 'circle,square', 'kinds have other names');
  await field(page, 'radius').fill('3');
  await field(page, 'name').fill('one');
  await expected({ kind: 'circle', radius: 3, name: 'one' }, 'the first kind');
  await select.selectOption({ label: 'square' });
  must((await field(page, 'radius').count()) === 0, 'fields of another kind stay');
  must((await field(page, 'name').inputValue()) === 'one', 'what was filled in is forgotten');
  await field(page, 'side').fill('4');
  await expected({ kind: 'square', side: 4, name: 'one' }, 'the second kind');
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  await page.getByLabel('Tested as JSON').fill('{"kind":"circle","radius":5}');
  await page.getByRole('button', { name: 'Form', exact: true }).click();
  must((await field(page, 'radius').inputValue()) === '5', 'the form is not of the kind that was written');
  say('kinds of objects');

  await show(page, {
    ...object({ id: { type: 'string' }, mail: { type: 'string' }, note: { type: 'string' } }),
    anyOf: [{ required: ['id'] }, { required: ['mail'] }],
  });
  await field(page, 'note').fill('both');
  await page.getByLabel('Which kind').selectOption({ label: 'with mail' });
  await field(page, 'mail').fill('a@b');
  await expected({ mail: 'a@b', note: 'both' }, 'fields beside alternatives');

  await show(page, { allOf: [object({ a: { type: 'string' } }, ['a']), object({ b: number }, ['b'])] });
  await field(page, 'a').fill('x');
  await field(page, 'b').fill('1');
  await expected({ a: 'x', b: 1 }, 'parts of one object');

  await show(page, { type: 'object', additionalProperties: number });
  await page.getByRole('button', { name: 'Add to values' }).click();
  await page.getByLabel('Name', { exact: true }).fill('tea');
  await page.getByLabel(/^Value/).fill('4');
  await expected({ tea: 4 }, 'names and values');
  await page.getByRole('button', { name: 'Add to values' }).click();
  await page.getByLabel('Name', { exact: true }).last().fill('tea');
  await page
    .getByLabel(/^Value/)
    .last()
    .fill('5');
  must((await read(page)).problems.includes('Two values have the same name.'), 'a name can be there twice');

  for (const more of [{ additionalProperties: true }, { minProperties: 1 }, { required: ['a'] }]) {
    const shown = await show(page, { type: 'object', ...more });
    must(!shown.isForm && shown.controls === 1, `${JSON.stringify(more)} is a form: ${shown.note}`);
  }
  must((await show(page, { type: 'object' })).note === 'Nothing has to be filled in.', 'there is a form');
  say('parts, names and values');

  await show(page, object({ a: { type: 'string' } }));
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  await page.getByLabel('Tested as JSON').fill('{"a":"x","b":{"c":1}}');
  await page.getByRole('button', { name: 'Form', exact: true }).click();
  await page.getByText('The form cannot show “b” as it is, so it stays JSON.').waitFor();
  await expected({ a: 'x', b: { c: 1 } }, 'what has no field');
  say('nothing is lost on the way to a form');
}

await scenario(async ({ page }) => {
  await kindOnes(page);
  await lists(page);
  await shapes(page);
  await hostileOnes(page);
});
