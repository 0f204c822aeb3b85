// Command lines and snippets that people paste, read into the parts of a server.

/** Words of a command line, with quotes and backslashes as shells have them. Null if a quote is left open. */
export function words(line) {
  const found = [];
  let word = null;
  let quote = null;
  for (let at = 0; at < line.length; at += 1) {
    const character = line[at];
    if (quote === "'") {
      if (character === "'") quote = null;
      else word += character;
    } else if (
      character === '\\' &&
      at + 1 < line.length &&
      (quote === null || '"\\$`'.includes(line[at + 1]))
    ) {
      at += 1;
      word = (word ?? '') + line[at];
    } else if (quote === '"') {
      if (character === '"') quote = null;
      else word += character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= '';
    } else if (/\s/.test(character)) {
      if (word !== null) found.push(word);
      word = null;
    } else {
      word = (word ?? '') + character;
    }
  }
  if (quote !== null) return null;
  if (word !== null) found.push(word);
  return found;
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const texts = (value) => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []);
const pairs = (value) =>
  isObject(value) ? Object.entries(value).filter(([, one]) => typeof one === 'string') : [];

/** What other tools call the transports. */
const TRANSPORTS = new Map([
  ['http', 'http'],
  ['streamable-http', 'http'],
  ['streamableHttp', 'http'],
  ['sse', 'sse'],
  ['ws', 'ws'],
]);

/** The first server of a snippet: `{ "mcpServers": { NAME: … } }`, `{ NAME: … }`, or the entry alone. Null if it is none. */
export function readSnippet(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value)) return null;
  let entry = value.mcpServers ?? value.servers ?? value;
  let name = '';
  if (isObject(entry) && typeof entry.command !== 'string' && typeof entry.url !== 'string') {
    [name, entry] = Object.entries(entry).find(([, one]) => isObject(one)) ?? ['', null];
  }
  if (!isObject(entry)) return null;
  const url =
    typeof entry.url === 'string'
      ? entry.url
      : typeof entry.serverUrl === 'string'
        ? entry.serverUrl
        : undefined;
  const command = typeof entry.command === 'string' ? entry.command : undefined;
  if (url === undefined && command === undefined) return null;
  return {
    name,
    transport: TRANSPORTS.get(entry.type ?? entry.transport),
    url,
    command,
    args: texts(entry.args),
    env: pairs(entry.env),
    headers: pairs(entry.headers),
    cwd: typeof entry.cwd === 'string' ? entry.cwd : '',
  };
}
