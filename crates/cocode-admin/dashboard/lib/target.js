// The command or address of a server in few words, for places where there is little room. The whole stands on its page.

const MAX_WORD = 34;
const MAX_TEXT = 110;

/** The end of a path, with as many directories as there is room for. */
function pathEnd(path, room) {
  const parts = path.split('/');
  let end = parts.pop() || parts.pop() || path;
  while (parts.length > 0 && `…/${parts.at(-1)}/${end}`.length <= room) end = `${parts.pop()}/${end}`;
  return end.length < path.length ? `…/${end}` : path;
}

/** `node …/server-files/dist/index.js /srv` for what is much longer. */
export function shortTarget(target) {
  const text = String(target ?? '');
  if (/^[a-z]+:\/\//i.test(text)) return text;
  const [program = '', ...words] = text.split(' ');
  const isPath = (word) => word.startsWith('/') && word.length > MAX_WORD;
  const shown = [
    program.startsWith('/') ? program.slice(program.lastIndexOf('/') + 1) || program : program,
    ...words.map((word) => (isPath(word) ? pathEnd(word, MAX_WORD) : word)),
  ].join(' ');
  return shown.length > MAX_TEXT ? `${shown.slice(0, MAX_TEXT)}…` : shown;
}
