// Says whether something was lost on the way from one shape of a value to another.

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether two texts name the same moment, however they write it. */
function isSameMoment(one, other) {
  const isMoment = (text) => typeof text === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text);
  return isMoment(one) && isMoment(other) && Date.parse(one) === Date.parse(other);
}

/** The first place in `value` that `kept` does not have as it is, as `a.b[2]`; null if everything is there. */
export function lost(value, kept, path = '') {
  if (Array.isArray(value)) {
    if (!Array.isArray(kept) || kept.length !== value.length) return path;
    for (const [index, item] of value.entries()) {
      const found = lost(item, kept[index], `${path}[${index}]`);
      if (found !== null) return found;
    }
    return null;
  }
  if (isObject(value)) {
    if (!isObject(kept)) return path;
    for (const [key, item] of Object.entries(value)) {
      const at = path === '' ? key : `${path}.${key}`;
      if (!Object.hasOwn(kept, key)) return at;
      const found = lost(item, kept[key], at);
      if (found !== null) return found;
    }
    return null;
  }
  return Object.is(value, kept) || isSameMoment(value, kept) ? null : path;
}
