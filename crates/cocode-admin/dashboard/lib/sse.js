// Server-sent events of an answer, read piece by piece. `EventSource` can neither say which status it got, nor
// where to go on after it was made anew, nor send a body.

/** The longest event, in characters; a longer one ends the stream. */
const MAX_EVENT = 16 * 1024 * 1024;

function parse(data) {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}

/** Collects the lines of one event. */
class Draft {
  constructor() {
    this.clear();
  }

  clear() {
    this.event = 'message';
    this.data = [];
    this.size = 0;
  }

  take(line) {
    const colon = line.indexOf(':');
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.event = value;
    if (field === 'id' && !value.includes('\0')) return value;
    if (field === 'data') {
      this.data.push(value);
      this.size += value.length;
      if (this.size > MAX_EVENT) throw new Error('an event is too long');
    }
    return null;
  }
}

/** The events of an answer: `{ event, data, id }`, data being JSON. `onBytes` hears of every piece, also of comments. */
export async function* eventsOf(response, onBytes = () => {}) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const draft = new Draft();
  let id = null;
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      onBytes();
      // A carriage return at the end may be half of a line end: it waits for what follows.
      const text = rest + value;
      const usable = text.endsWith('\r') ? text.slice(0, -1) : text;
      const lines = usable.split(/\r\n|\n|\r/);
      rest = lines.pop() + text.slice(usable.length);
      if (rest.length > MAX_EVENT) throw new Error('a line is too long');
      for (const line of lines) {
        if (line !== '') {
          id = draft.take(line) ?? id;
        } else {
          if (draft.data.length > 0) yield { event: draft.event, data: parse(draft.data.join('\n')), id };
          draft.clear();
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
