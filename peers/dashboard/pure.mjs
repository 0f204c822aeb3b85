#!/usr/bin/env node
// The parts of the dashboard that need no browser: differences, schemas, command lines, numbers, the text of events.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const dashboard = pathToFileURL(join(import.meta.dirname, '../../crates/cocode-admin/dashboard/'));
const load = (name) => import(new URL(name, dashboard).href);
const say = (step) => process.stdout.write(`${JSON.stringify({ step, ok: true })}\n`);

const { difference } = await load('lib/diff.js');
const { lost } = await load('lib/kept.js');
const { readForm } = await load('lib/schema.js');
const { shortTarget } = await load('lib/target.js');
const { misfits } = await load('lib/check.js');
const { readSnippet, words } = await load('lib/command-line.js');
const { bytes, milliseconds, percent, relative, short, span } = await load('lib/format.js');
const { eventsOf } = await load('lib/sse.js');

const shown = (before, after) =>
  difference(before, after).map(({ kind, text }) => `${{ same: ' ', gone: '-', come: '+' }[kind]}${text}`);
assert.deepEqual(shown('a\nb\nc\n', 'a\nx\nc\n'), [' a', '-b', '+x', ' c']);
assert.deepEqual(shown(undefined, 'a\nb'), ['+a', '+b']);
assert.deepEqual(shown('a\nb', ''), ['-a', '-b']);
assert.deepEqual(shown('same', 'same'), [' same']);
assert.deepEqual(
  difference('a: 1\nz', 'a: 2\nz').map(({ old, new: now, mark }) => [old, now, mark]),
  [
    [1, undefined, { from: 3, to: 4 }],
    [undefined, 1, { from: 3, to: 4 }],
    [2, 2, undefined],
  ],
);
const long = Array.from({ length: 3_000 }, (_, index) => String(index));
assert.equal(difference(long.join('\n'), long.map((line) => `${line}!`).join('\n')).length, 6_000);
say('differences');

const fields = (properties, more) =>
  readForm({ type: 'object', properties, ...more }).fields.map(({ key, kind }) => `${key}:${kind}`);
assert.deepEqual(
  fields({
    a: { type: 'string' },
    b: { type: ['integer', 'null'] },
    c: { anyOf: [{ type: 'boolean' }, { type: 'null' }] },
  }),
  ['a:string', 'b:number', 'c:boolean'],
);
assert.deepEqual(fields({ a: { type: 'string' }, b: { const: 1 } }, { required: ['b'] }), [
  'b:choice',
  'a:string',
]);
assert.deepEqual(
  fields({
    a: { anyOf: [{ type: 'string' }, { type: 'number' }] },
    b: { type: 'array', items: {} },
    c: { $ref: 'https://example.com/a' },
  }),
  ['a:json', 'b:json', 'c:json'],
);
assert.deepEqual(
  fields(
    { a: { $ref: '#/$defs/x' } },
    { $defs: { x: { type: 'object', properties: { y: { type: 'string' } } } } },
  ),
  ['a:object'],
);
const outline = ({ kind, fields: all, more, item, variants }) =>
  kind === 'object'
    ? Object.fromEntries([
        ...all.map((one) => [one.key, outline(one)]),
        ...(more ? [['*', outline(more)]] : []),
      ])
    : kind === 'variants'
      ? variants.map(({ label, field }) => [label, outline(field)])
      : kind === 'map'
        ? { '*': outline(item) }
        : kind;
const shape = (schema) => outline(readForm(schema));
const [text, whole] = [{ type: 'string' }, { type: 'integer' }];
assert.deepEqual(
  shape({
    allOf: [
      { type: 'object', properties: { a: text }, required: ['a'] },
      { $ref: '#/$defs/more' },
    ],
    $defs: { more: { properties: { b: whole, a: { minLength: 2 } } } },
  }),
  { a: 'string', b: 'number' },
);
assert.deepEqual(
  shape({
    anyOf: [{ $ref: '#/$defs/One' }, { properties: { kind: { const: 'two' }, b: text } }],
    $defs: { One: { type: 'object', properties: { a: text } } },
  }),
  [
    ['One', { a: 'string' }],
    ['two', { kind: 'choice', b: 'string' }],
  ],
);
assert.deepEqual(
  shape({ properties: { a: text, b: text }, oneOf: [{ required: ['a'] }, { required: ['b'] }] }),
  [
    ['with a', { a: 'string', b: 'string' }],
    ['with b', { b: 'string', a: 'string' }],
  ],
);
assert.deepEqual(shape({ properties: { a: text }, additionalProperties: whole }), {
  a: 'string',
  '*': 'number',
});
assert.deepEqual(shape({ properties: { m: { additionalProperties: text } } }), { m: { '*': 'string' } });
for (const tangled of [
  { oneOf: [{ $ref: '#' }, { properties: { a: text } }] },
  { allOf: Array.from({ length: 32 }, () => ({ $ref: '#' })) },
  { allOf: [{ properties: { a: text } }, { type: 'string' }] },
  { type: 'object', additionalProperties: true },
  { type: 'object', patternProperties: { '^x': text } },
])
  assert.equal(shape(tangled), 'json', JSON.stringify(tangled));
assert.deepEqual(shape({ type: 'object' }), {});
assert.equal(lost({ a: [1, { b: null }] }, { a: [1, { b: null }], more: 1 }), null);
assert.equal(lost({ a: [1, { b: null }] }, { a: [1, {}] }), 'a[1].b');
assert.equal(lost({ at: '2026-03-01T10:00:00Z' }, { at: '2026-03-01T10:00:00.000Z' }), null);
assert.equal(lost({ a: '1' }, { a: 1 }), 'a');
assert.equal(
  shortTarget('/opt/node/bin/node /opt/peers/node_modules/@scope/server-files/dist/index.js /srv'),
  'node …/server-files/dist/index.js /srv',
);
assert.equal(shortTarget('https://example.com/a/very/long/path/to/mcp'), 'https://example.com/a/very/long/path/to/mcp');
assert.equal(readForm(true).kind, 'json');
assert.equal(
  readForm({ type: 'object', properties: { a: { description: 'x'.repeat(500_000) } } }).kind,
  'json',
);
say('schemas');

const said = (value, schema) => misfits(value, schema).map(({ path, message }) => `${path} ${message}`);
assert.deepEqual(
  said(
    { a: 'x', c: 1 },
    { type: 'object', properties: { a: { type: 'integer' } }, required: ['b'], additionalProperties: false },
  ),
  ['b is missing', 'a must be integer, and is string', 'c is unknown to the schema'],
);
assert.deepEqual(said([1, 'x'], { items: { anyOf: [{ type: 'string' }, { minimum: 3, type: 'number' }] } }), [
  '[0] fits none of the alternatives',
]);
assert.deepEqual(said({ a: { a: { a: 1 } } }, { properties: { a: { $ref: '#' } } }), []);
assert.deepEqual(said('a'.repeat(40), { pattern: '^(a+)+$!' }), []);
say('values');

assert.deepEqual(words(`npx -y "a b" 'c "d' e\\ f ""`), ['npx', '-y', 'a b', 'c "d', 'e f', '']);
assert.equal(words(`echo "open`), null);
assert.deepEqual(words('  '), []);
assert.deepEqual(
  readSnippet(
    '{"mcpServers":{"x":{"type":"stdio","command":"npx","args":["-y","z",7],"env":{"A":"1","B":2}}}}',
  ),
  {
    name: 'x',
    transport: undefined,
    url: undefined,
    command: 'npx',
    args: ['-y', 'z'],
    env: [['A', '1']],
    headers: [],
    cwd: '',
  },
);
assert.equal(readSnippet('{"x":{"url":"https://example.com"}}').url, 'https://example.com');
assert.equal(readSnippet('{"x":1}'), null);
assert.equal(readSnippet('nothing'), null);
say('command lines and snippets');

assert.deepEqual([0, 999, 1_000, 12_345, 99_950, 999_499, 999_500].map(short), [
  '0',
  '999',
  '1k',
  '12.3k',
  '100k',
  '999k',
  '1M',
]);
assert.deepEqual([0.4, 12.6, 999.6, 12_340, 125_000].map(milliseconds), [
  '0.4 ms',
  '13 ms',
  '1.00 s',
  '12.3 s',
  '2 min 5 s',
]);
assert.deepEqual([5, 90, 3_700, 90_000].map(span), ['5 s', '1 min 30 s', '1 h 1 min', '1 d 1 h']);
assert.deepEqual([bytes(900), bytes(1_500), bytes(2e6)], ['900 B', '1.5 kB', '2 MB']);
assert.deepEqual([percent(1, 3), percent(1, 100_000), percent(1, 0)], ['33%', '<0.1%', '–']);
assert.deepEqual(
  [relative(10_000, 130_000), relative(130_000, 10_000), relative('x')],
  ['2 min ago', 'in 2 min', '–'],
);
say('numbers');

const pieces = [
  'id: 1\r',
  '\nevent: call\r\nda',
  'ta: {"a":',
  '1}\r\n\r\n: comment\n\ndata: [1,\ndata: 2]\n\nid: 3\ndata: broken\n\n',
  'data: {"cut": ',
];
const body = new ReadableStream({
  start(controller) {
    for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
    controller.close();
  },
});
const events = [];
for await (const event of eventsOf(new Response(body))) events.push(event);
assert.deepEqual(events, [
  { event: 'call', data: { a: 1 }, id: '1' },
  { event: 'message', data: [1, 2], id: '1' },
  { event: 'message', data: null, id: '3' },
]);
say('events');
