// Reads a JSON schema that a server gave into the fields of a form, within bounds: it may be deep, endless or
// made to harm. What does not fit into a form becomes a field for JSON, and what is beyond all bounds a whole text.
import { joined, withoutAllOf } from './schema-merge.js';

/** Bounds of a form. */
const MAX_FIELDS = 150;
const MAX_DEPTH = 4;
const MAX_HOPS = 16;
const MAX_SCHEMA_CHARACTERS = 400_000;
const MAX_OPTIONS = 5_000;
const MAX_VARIANTS = 20;
const MAX_PARTS = 500;

const TANGLED = 'It has alternatives that do not fit into a form.';

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (value) => (typeof value === 'string' ? value : undefined);
const numberOf = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);

/** A property that the object has itself: `constructor` and the like are there otherwise. */
export const own = (object, key) =>
  isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined;

/** Follows `#/a/b` in the schema. */
function pointed(root, pointer) {
  if (pointer === '#') return root;
  if (!pointer.startsWith('#/')) return undefined;
  let found = root;
  for (const raw of pointer.slice(2).split('/')) {
    let key = raw;
    try {
      key = decodeURIComponent(raw);
    } catch {
      return undefined;
    }
    key = key.replaceAll('~1', '/').replaceAll('~0', '~');
    found = Array.isArray(found) ? found[Number(key)] : own(found, key);
  }
  return found;
}

/** The schema that references lead to, and those on the way. Null where they go in circles or nowhere. */
export function resolved(schema, root, trail = []) {
  let current = schema;
  let way = trail;
  for (let hop = 0; hop < MAX_HOPS; hop += 1) {
    if (!isObject(current)) return { schema: current === true ? {} : null, trail: way };
    const reference = own(current, '$ref');
    if (reference === undefined) return { schema: current, trail: way };
    if (typeof reference !== 'string' || way.includes(reference)) return { schema: null, trail: way };
    const target = pointed(root, reference);
    way = [...way, reference];
    if (!isObject(target)) return { schema: target === true ? {} : null, trail: way };
    const { $ref: _, ...beside } = current;
    current = { ...target, ...beside };
  }
  return { schema: null, trail: way };
}

function typesOf(schema) {
  const type = own(schema, 'type');
  if (Array.isArray(type)) return type.filter((one) => typeof one === 'string').slice(0, 8);
  if (typeof type === 'string') return [type];
  if (own(schema, 'properties') !== undefined || isObject(own(schema, 'additionalProperties')))
    return ['object'];
  if (own(schema, 'items') !== undefined) return ['array'];
  return [];
}

function optionsOf(schema, root, trail) {
  if (own(schema, 'const') !== undefined)
    return [{ value: schema.const, label: textOf(own(schema, 'title')) }];
  const values = own(schema, 'enum');
  if (Array.isArray(values)) {
    const names = own(schema, 'enumNames');
    return values
      .slice(0, MAX_OPTIONS)
      .map((value, index) => ({ value, label: textOf(Array.isArray(names) ? names[index] : undefined) }));
  }
  const variants = own(schema, 'oneOf') ?? own(schema, 'anyOf');
  if (!Array.isArray(variants) || variants.length === 0 || variants.length > MAX_OPTIONS) return null;
  const options = [];
  for (const variant of variants) {
    const { schema: one } = resolved(variant, root, trail);
    if (own(one, 'const') === undefined) return null;
    options.push({ value: one.const, label: textOf(own(one, 'title')) });
  }
  return options;
}

/** The alternatives of a schema that are more than nothing. */
function alternativesOf(schema) {
  const alternatives = own(schema, 'oneOf') ?? own(schema, 'anyOf');
  return Array.isArray(alternatives) ? alternatives.filter((one) => own(one, 'type') !== 'null') : [];
}

/** Whether an object without named fields is expected to have some all the same. */
function asksForMore(schema) {
  const isFilled = (value) => isObject(value) && Object.keys(value).length > 0;
  const required = own(schema, 'required');
  return (
    own(schema, 'additionalProperties') === true ||
    own(schema, 'minProperties') > 0 ||
    (Array.isArray(required) && required.length > 0) ||
    ['patternProperties', 'if', 'not', 'dependentSchemas', 'propertyNames'].some((word) =>
      isFilled(own(schema, word)),
    )
  );
}

/** What to call one of several kinds of objects: its title, what tells it from the others, or what it needs. */
function labelOf(raw, schema, beside) {
  const title = textOf(own(schema, 'title'));
  if (title) return title;
  const properties = isObject(own(schema, 'properties')) ? Object.values(schema.properties) : [];
  const constant = properties.map((one) => own(one, 'const')).find((one) => typeof one === 'string');
  if (constant) return constant;
  const name = textOf(own(raw, '$ref'))?.split('/').at(-1);
  if (name && name !== '#') return name;
  const known = Array.isArray(own(beside, 'required')) ? beside.required : [];
  const required = Array.isArray(own(schema, 'required')) ? schema.required : [];
  const needed = required.filter((key) => typeof key === 'string' && !known.includes(key));
  const common = own(beside, 'properties');
  const keys = isObject(own(schema, 'properties')) ? Object.keys(schema.properties) : [];
  const named = needed.length > 0 ? needed : keys.filter((key) => own(common, key) === undefined);
  return named.length > 0 ? `with ${named.slice(0, 4).join(', ')}` : undefined;
}

/** Reads schemas into fields: `{ kind, key, title, description, isRequired, initial, … }`. */
class Reader {
  constructor(root) {
    this.root = root;
    this.left = MAX_FIELDS;
    this.parts = MAX_PARTS;
  }

  /** A part of a schema, and the references that led to it. There are only so many of them. */
  part(schema, trail) {
    this.parts -= 1;
    return this.parts < 0 ? { schema: null, trail } : resolved(schema, this.root, trail);
  }

  /** Takes away what only wraps: one alternative beside null, and the parts of `allOf`, which become one. */
  unwrapped(schema, trail) {
    let { schema: current, trail: way } = this.part(schema, trail);
    let isNullable = false;
    for (let layer = 0; layer < MAX_HOPS && current; layer += 1) {
      current = withoutAllOf(current, (part) => this.part(part, way).schema) ?? current;
      const alternatives = own(current, 'anyOf') ?? own(current, 'oneOf');
      if (!Array.isArray(alternatives) || alternatives.length > MAX_VARIANTS) break;
      const real = alternatives.filter((one) => own(one, 'type') !== 'null');
      isNullable ||= real.length < alternatives.length;
      if (real.length !== 1) break;
      const { anyOf: _any, oneOf: _one, ...beside } = current;
      const step = this.part(real[0], way);
      if (step.schema === null) return { schema: null, trail: step.trail, isNullable };
      const whole = joined(beside, step.schema);
      if (whole === null) break;
      current = whole;
      way = step.trail;
    }
    return { schema: current, trail: way, isNullable };
  }

  field(key, raw, { isRequired, depth, trail }) {
    this.left -= 1;
    const { schema, trail: way, isNullable } = this.unwrapped(raw, trail);
    const base = {
      key,
      isRequired,
      isNullable,
      title: textOf(own(schema, 'title')),
      description: textOf(own(schema, 'description')),
      initial: own(schema, 'default'),
      schema: schema ?? {},
    };
    if (schema === null)
      return { ...base, kind: 'json', note: 'Its schema refers to itself or leads nowhere.' };
    if (this.left < 0) return { ...base, kind: 'json', note: 'The schema has too many fields for a form.' };
    const options = optionsOf(schema, this.root, way);
    if (options) return { ...base, kind: 'choice', options };
    const types = typesOf(schema).filter((type) => type !== 'null');
    base.isNullable ||= typesOf(schema).includes('null');
    const mixed = ['anyOf', 'oneOf', 'allOf', 'not'].some((word) => own(schema, word) !== undefined);
    const type = types.length === 0 && alternativesOf(schema).length > 0 ? 'object' : types[0];
    if (types.length > 1 || type === undefined || (mixed && type !== 'object'))
      return { ...base, kind: 'json' };
    return this.typed(type, base, { schema, depth, trail: way });
  }

  typed(type, base, { schema, depth, trail }) {
    if (type === 'string') {
      const length = { min: numberOf(own(schema, 'minLength')), max: numberOf(own(schema, 'maxLength')) };
      return {
        ...base,
        kind: 'string',
        format: textOf(own(schema, 'format')),
        pattern: textOf(own(schema, 'pattern')),
        length,
      };
    }
    if (type === 'number' || type === 'integer') {
      const bounds = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'];
      const range = new Map(bounds.map((bound) => [bound, numberOf(own(schema, bound))]));
      return { ...base, kind: 'number', isInteger: type === 'integer', range };
    }
    if (type === 'boolean') return { ...base, kind: 'boolean' };
    if (depth >= MAX_DEPTH) return { ...base, kind: 'json', note: 'Nested too deeply for a form.' };
    if (type === 'array') return this.list(base, { schema, depth, trail });
    if (type === 'object') return this.object(base, { schema, depth, trail });
    return { ...base, kind: 'json' };
  }

  list(base, { schema, depth, trail }) {
    const items = own(schema, 'items');
    if (!isObject(items)) return { ...base, kind: 'json' };
    const item = this.field('', items, { isRequired: true, depth: depth + 1, trail });
    const size = { min: numberOf(own(schema, 'minItems')) ?? 0, max: numberOf(own(schema, 'maxItems')) };
    if (item.kind === 'choice' && item.options.length <= 40)
      return { ...base, kind: 'choices', options: item.options, size };
    if (item.kind === 'json') return { ...base, kind: 'json' };
    return { ...base, kind: 'list', item, size };
  }

  object(base, { schema, depth, trail }) {
    if (own(schema, 'allOf') !== undefined) return { ...base, kind: 'json', note: TANGLED };
    if (alternativesOf(schema).length > 0)
      return this.variants(base, { schema, depth, trail }) ?? { ...base, kind: 'json', note: TANGLED };
    const properties = own(schema, 'properties');
    const entries = isObject(properties) ? Object.entries(properties) : [];
    const more = this.more(schema, { depth, trail });
    if (entries.length === 0) {
      if (more) return { ...base, kind: 'map', item: more };
      if (depth > 0) return { ...base, kind: 'json' };
      if (asksForMore(schema)) return { ...base, kind: 'json', note: 'The schema names no fields.' };
    }
    const required = new Set(Array.isArray(own(schema, 'required')) ? schema.required : []);
    // Those that are needed come first, otherwise the order is that of the server.
    entries.sort(([one], [other]) => Number(required.has(other)) - Number(required.has(one)));
    const fields = [];
    for (const [key, property] of entries) {
      if (this.left <= 0)
        return { ...base, kind: 'json', fields: [], note: 'The schema has too many fields for a form.' };
      fields.push(this.field(key, property, { isRequired: required.has(key), depth: depth + 1, trail }));
    }
    return { ...base, kind: 'object', fields, more };
  }

  /** The field for values whose names nobody has said yet, if there may be such. */
  more(schema, { depth, trail }) {
    const additional = own(schema, 'additionalProperties');
    if (!isObject(additional) || this.left <= 0) return null;
    return this.field('', additional, { isRequired: true, depth: depth + 1, trail });
  }

  /** A choice among objects of several kinds, or null if they are none. What is said beside them holds for each. */
  variants(base, { schema, depth, trail }) {
    const { anyOf, oneOf, ...beside } = schema;
    const alternatives = alternativesOf(schema);
    if ((anyOf !== undefined && oneOf !== undefined) || alternatives.length > MAX_VARIANTS) return null;
    const variants = [];
    for (const [index, raw] of alternatives.entries()) {
      const step = this.part(raw, trail);
      const said = withoutAllOf(step.schema, (part) => this.part(part, step.trail).schema);
      const whole = isObject(said) ? joined(beside, said) : null;
      const types = whole === null ? [] : typesOf(whole).filter((type) => type !== 'null');
      const isMeant = types.length === 1 ? types[0] === 'object' : alternativesOf(whole).length > 0;
      if (whole === null || !isMeant || this.left <= 0) return null;
      const description = textOf(own(said, 'description'));
      const field = this.object(
        { key: base.key, isRequired: true, description, initial: own(said, 'default'), schema: whole },
        { schema: whole, depth, trail: step.trail },
      );
      if (field.kind === 'json') return null;
      variants.push({ label: labelOf(raw, said, beside) ?? `Way ${index + 1}`, field });
    }
    return { ...base, kind: 'variants', variants, root: this.root };
  }
}

/** Whether nothing but nesting keeps a schema from being text; also guards against what cannot be written as JSON. */
function sizeOf(schema) {
  try {
    return JSON.stringify(schema)?.length ?? 0;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** The form of a schema: an object field, or a JSON field with a note that says why. */
export function readForm(schema) {
  const fallback = { kind: 'json', key: '', isRequired: true, schema: isObject(schema) ? schema : {} };
  if (!isObject(schema)) return { ...fallback, note: 'There is no schema: any JSON object can be sent.' };
  if (sizeOf(schema) > MAX_SCHEMA_CHARACTERS)
    return { ...fallback, note: 'The schema is too large for a form.' };
  try {
    const reader = new Reader(schema);
    const { schema: root, trail } = reader.unwrapped(schema, []);
    if (root === null) return { ...fallback, note: 'The schema refers to itself or leads nowhere.' };
    const types = typesOf(root);
    if (types.length > 0 && !types.includes('object'))
      return { ...fallback, note: 'The schema is not that of an object.' };
    const form = reader.object(
      { key: '', isRequired: true, schema: root, initial: own(root, 'default') },
      { schema: root, depth: 0, trail },
    );
    return form.kind === 'json' ? { ...fallback, note: form.note } : form;
  } catch {
    // A schema that is nested deeper than the stack of this page.
    return { ...fallback, note: 'The schema cannot be read.' };
  }
}
