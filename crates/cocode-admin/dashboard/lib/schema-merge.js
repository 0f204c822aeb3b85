// Makes one schema of several that must all hold, as far as one schema can say it.

/** Parts of parts that are followed; deeper ones are left to whoever writes JSON. */
const MAX_LAYERS = 8;
const MAX_PARTS = 32;

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Words that only describe: the first that is said counts. */
const WORDS = new Set([
  'title',
  'description',
  'default',
  'examples',
  '$comment',
  '$schema',
  '$id',
  'readOnly',
  'writeOnly',
  'deprecated',
  'discriminator',
]);
const LEAST = new Set(['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties']);
const MOST = new Set(['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties']);

const listOf = (value) => (Array.isArray(value) ? value : [value]);

/** The types that both allow, or undefined if there are none. */
function types(one, other) {
  const both = listOf(one).filter(
    (type) => listOf(other).includes(type) || (type === 'integer' && listOf(other).includes('number')),
  );
  if (listOf(one).includes('number') && listOf(other).includes('integer')) both.push('integer');
  return both.length === 0 ? undefined : both.length === 1 ? both[0] : both;
}

/** Properties of both; one that both have must be both. */
function properties(one, other) {
  // Without a prototype, so that no name of a server means anything here.
  const all = Object.assign(Object.create(null), one);
  for (const [key, schema] of Object.entries(other)) {
    all[key] = key in all && !same(all[key], schema) ? { allOf: [all[key], schema] } : schema;
  }
  return all;
}

/** What holds if both values of a keyword hold, or undefined if no one value says that. */
function both(key, one, other) {
  if (same(one, other) || WORDS.has(key)) return one;
  if (key === 'type') return types(one, other);
  if (key === 'required' && Array.isArray(one) && Array.isArray(other))
    return [...new Set([...one, ...other])];
  if ((key === 'properties' || key === '$defs' || key === 'definitions') && isObject(one) && isObject(other))
    return properties(one, other);
  if (key === 'enum' && Array.isArray(one) && Array.isArray(other))
    return one.filter((value) => other.some((another) => same(value, another)));
  if (typeof one === 'number' && typeof other === 'number') {
    if (LEAST.has(key)) return Math.max(one, other);
    if (MOST.has(key)) return Math.min(one, other);
  }
  return undefined;
}

/** A schema that says what both say, or null if none can. */
export function joined(one, other) {
  const all = Object.assign(Object.create(null), one);
  for (const [key, value] of Object.entries(other)) {
    if (!(key in all)) {
      all[key] = value;
      continue;
    }
    const agreed = both(key, all[key], value);
    if (agreed === undefined) return null;
    all[key] = agreed;
  }
  return { ...all };
}

/** A schema without `allOf`, whose parts are in it; null if that cannot be. `resolve(part)` follows references. */
export function withoutAllOf(schema, resolve, layer = 0) {
  if (!isObject(schema) || !Array.isArray(schema.allOf) || !Object.hasOwn(schema, 'allOf')) return schema;
  if (layer >= MAX_LAYERS || schema.allOf.length > MAX_PARTS) return null;
  const { allOf, ...beside } = schema;
  let all = beside;
  for (const part of allOf) {
    const whole = withoutAllOf(resolve(part), resolve, layer + 1);
    if (!isObject(whole)) return null;
    all = joined(all, whole);
    if (all === null) return null;
  }
  return all;
}
