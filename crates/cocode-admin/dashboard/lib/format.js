// Numbers, spans of time and moments, as people read them.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const clockTime = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const dayTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
});
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

/** 12,345 */
export const count = (value) => (isNumber(value) ? whole.format(value) : '–');

/** `1 tool`, `2 tools` */
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** 940, 12.3k, 1.2M */
export function short(value) {
  if (!isNumber(value)) return '–';
  if (value < 1_000) return whole.format(value);
  if (value < 999_500)
    return `${value < 99_950 ? oneDigit.format(value / 1_000) : whole.format(value / 1_000)}k`;
  return `${oneDigit.format(value / 1_000_000)}M`;
}

/** 0.4 ms, 12 ms, 1.24 s, 2 min 5 s */
export function milliseconds(value) {
  if (!isNumber(value)) return '–';
  if (value < 0.05) return '0 ms';
  if (value < 1) return `${value.toFixed(1)} ms`;
  if (value < 999.5) return `${whole.format(value)} ms`;
  if (value < 59_950) return `${(value / 1_000).toFixed(value < 9_995 ? 2 : 1)} s`;
  return span(value / 1_000);
}

/** 42 s, 5 min, 3 h 20 min, 4 d 2 h */
export function span(seconds) {
  if (!isNumber(seconds)) return '–';
  const total = Math.max(0, Math.round(seconds));
  if (total < 60) return `${total} s`;
  const minutes = Math.floor(total / 60);
  if (minutes < 60) return minutes < 5 && total % 60 ? `${minutes} min ${total % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** 12 B, 3.4 kB, 1.2 MB */
export function bytes(value) {
  if (!isNumber(value)) return '–';
  if (value < 1_000) return `${whole.format(value)} B`;
  if (value < 999_500) return `${oneDigit.format(value / 1_000)} kB`;
  return `${oneDigit.format(value / 1_000_000)} MB`;
}

/** A share of something, in percent. */
export function percent(part, all) {
  if (!isNumber(part) || !isNumber(all) || all <= 0) return '–';
  const value = (part / all) * 100;
  if (value > 0 && value < 0.1) return '<0.1%';
  return `${value < 10 ? oneDigit.format(value) : whole.format(value)}%`;
}

/** Milliseconds since 1970 of a moment that the API gave, or null. */
export function moment(value) {
  if (isNumber(value)) return value;
  const parsed = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(parsed) ? null : parsed;
}

/** 14:03:22 */
export function clock(value) {
  const at = moment(value);
  return at === null ? '–' : clockTime.format(at);
}

/** 3 Mar 2026, 14:03 */
export function date(value) {
  const at = moment(value);
  return at === null ? '–' : dayTime.format(at);
}

/** 3 Mar 2026 */
export function dayOf(value) {
  const at = moment(value);
  return at === null ? '–' : day.format(at);
}

/** 42 s, 5 min, 3 h, 4 d */
function roughly(seconds) {
  const [size, unit] = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
    [1, 's'],
  ].find(([size]) => seconds >= size) ?? [1, 's'];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** `now`, `12 s ago`, `in 3 min` */
export function relative(value, now = Date.now()) {
  const at = moment(value);
  if (at === null) return '–';
  const seconds = (now - at) / 1_000;
  if (Math.abs(seconds) < 3) return 'now';
  return seconds > 0 ? `${roughly(seconds)} ago` : `in ${roughly(-seconds)}`;
}

/** How long a server is up by now, in seconds; it said so when it was heard of last. */
export function uptime({ uptimeSeconds, heardAt }, now = Date.now()) {
  return isNumber(uptimeSeconds) ? uptimeSeconds + (now - (heardAt ?? now)) / 1_000 : null;
}
