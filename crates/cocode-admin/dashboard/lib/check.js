// Says what about a value does not fit a schema. A help for those who write JSON by hand: the gateway and the server
// check for themselves. It stops early rather than late, and evaluates no pattern, since a pattern can take for ever.
import { own, resolved } from './schema.js';

const MAX_STEPS = 5_000;
const MAX_DEPTH = 32;
const MAX_MESSAGES = 8;

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

function typeOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

function hasType(value, type) {
  if (type === 'integer') return Number.isInteger(value);
  return typeOf(value) === type;
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const count = (text) => [...text].length;

class Check {
  constructor(root) {
    this.root = root;
    this.steps = 0;
    this.messages = [];
  }

  say(path, message) {
    if (this.messages.length < MAX_MESSAGES) this.messages.push({ path: path || 'The value', message });
  }

  visit(value, raw, path, depth) {
    this.steps += 1;
    if (this.steps > MAX_STEPS || depth > MAX_DEPTH || this.messages.length >= MAX_MESSAGES) return;
    if (raw === false) this.say(path, 'is not allowed');
    const { schema } = resolved(raw, this.root);
    if (!isObject(schema)) return;
    this.type(value, schema, path);
    this.choices(value, schema, path, depth);
    if (typeof value === 'string') this.string(value, schema, path);
    if (typeof value === 'number') this.number(value, schema, path);
    if (Array.isArray(value)) this.list(value, schema, path, depth);
    if (isObject(value)) this.object(value, schema, path, depth);
  }

  type(value, schema, path) {
    const type = own(schema, 'type');
    const types = Array.isArray(type) ? type : [type];
    if (type !== undefined && !types.some((one) => hasType(value, one))) {
      this.say(path, `must be ${types.join(' or ')}, and is ${typeOf(value)}`);
    }
  }

  choices(value, schema, path, depth) {
    const options = own(schema, 'enum');
    if (Array.isArray(options) && !options.some((option) => same(option, value)))
      this.say(path, 'is none of the values that are allowed');
    const constant = own(schema, 'const');
    if (constant !== undefined && !same(constant, value))
      this.say(path, `must be ${JSON.stringify(constant).slice(0, 80)}`);
    const variants = own(schema, 'anyOf') ?? own(schema, 'oneOf');
    if (
      Array.isArray(variants) &&
      variants.length > 0 &&
      !variants.some((variant) => this.fits(value, variant, depth))
    ) {
      this.say(path, 'fits none of the alternatives');
    }
    const all = own(schema, 'allOf');
    if (Array.isArray(all)) for (const part of all) this.visit(value, part, path, depth + 1);
  }

  fits(value, schema, depth) {
    const messages = this.messages;
    this.messages = [];
    this.visit(value, schema, '', depth + 1);
    const fits = this.messages.length === 0;
    this.messages = messages;
    return fits;
  }

  string(value, schema, path) {
    const length = count(value);
    if (length < own(schema, 'minLength')) this.say(path, `needs at least ${schema.minLength} characters`);
    if (length > own(schema, 'maxLength')) this.say(path, `may have at most ${schema.maxLength} characters`);
  }

  number(value, schema, path) {
    if (value < own(schema, 'minimum')) this.say(path, `must be at least ${schema.minimum}`);
    if (value > own(schema, 'maximum')) this.say(path, `must be at most ${schema.maximum}`);
    if (value <= own(schema, 'exclusiveMinimum'))
      this.say(path, `must be more than ${schema.exclusiveMinimum}`);
    if (value >= own(schema, 'exclusiveMaximum'))
      this.say(path, `must be less than ${schema.exclusiveMaximum}`);
  }

  list(value, schema, path, depth) {
    if (value.length < own(schema, 'minItems')) this.say(path, `needs at least ${schema.minItems} items`);
    if (value.length > own(schema, 'maxItems')) this.say(path, `may have at most ${schema.maxItems} items`);
    const items = own(schema, 'items');
    if (items !== undefined)
      value.forEach((item, index) => this.visit(item, items, `${path}[${index}]`, depth + 1));
  }

  object(value, schema, path, depth) {
    const properties = own(schema, 'properties');
    const at = (key) => (path ? `${path}.${key}` : key);
    const required = own(schema, 'required');
    for (const key of Array.isArray(required) ? required : []) {
      if (typeof key === 'string' && !Object.hasOwn(value, key)) this.say(at(key), 'is missing');
    }
    for (const [key, item] of Object.entries(value)) {
      const property = own(properties, key);
      if (property !== undefined) this.visit(item, property, at(key), depth + 1);
      else if (own(schema, 'additionalProperties') === false) this.say(at(key), 'is unknown to the schema');
      else if (isObject(own(schema, 'additionalProperties')))
        this.visit(item, schema.additionalProperties, at(key), depth + 1);
    }
  }
}

/** What does not fit: `[{ path, message }]`, a few at most. References are looked up in `root`. */
export function misfits(value, schema, root = schema) {
  const check = new Check(root);
  try {
    check.visit(value, schema, '', 0);
  } catch {
    return [];
  }
  return check.messages;
}
