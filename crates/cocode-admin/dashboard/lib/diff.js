// Two texts, line by line: what went, what came, what stayed.

/** The most pairs of lines that are compared; beyond, everything that differs counts as replaced. */
const MAX_PAIRS = 4_000_000;

/** Lengths of the longest common runs of lines from each pair on. */
function table(before, after) {
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        before[i] === after[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  return (i, j) => lengths[i * width + j];
}

function middle(before, after) {
  const gone = before.map((text) => ({ kind: 'gone', text }));
  const come = after.map((text) => ({ kind: 'come', text }));
  if (before.length * after.length > MAX_PAIRS || before.length === 0 || after.length === 0)
    return [...gone, ...come];
  const common = table(before, after);
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      lines.push({ kind: 'same', text: before[i] });
      i += 1;
      j += 1;
    } else if (common(i + 1, j) >= common(i, j + 1)) {
      lines.push(gone[i]);
      i += 1;
    } else {
      lines.push(come[j]);
      j += 1;
    }
  }
  return [...lines, ...gone.slice(i), ...come.slice(j)];
}

/** Marks what differs within two lines that stand for each other: `{ from, to }` of each. */
function within(one, other) {
  const shortest = Math.min(one.length, other.length);
  let start = 0;
  while (start < shortest && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < shortest - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  // Lines that have little in common are read better without marks.
  if (start + end < shortest / 3) return null;
  return [
    { from: start, to: one.length - end },
    { from: start, to: other.length - end },
  ];
}

function pairUp(lines) {
  let at = 0;
  while (at < lines.length) {
    let gone = at;
    while (lines[gone]?.kind === 'gone') gone += 1;
    let come = gone;
    while (lines[come]?.kind === 'come') come += 1;
    if (gone > at && come > gone) {
      for (let k = 0; k < Math.min(gone - at, come - gone); k += 1) {
        const marks = within(lines[at + k].text, lines[gone + k].text);
        if (marks) [lines[at + k].mark, lines[gone + k].mark] = marks;
      }
    }
    at = Math.max(come, at + 1);
  }
  return lines;
}

/** The lines of both texts in order: `{ kind: 'same' | 'gone' | 'come', text, old, new, mark }`. */
export function difference(before, after) {
  const old =
    before === undefined || before === null || before === '' ? [] : before.replace(/\n$/, '').split('\n');
  const now = after === '' ? [] : after.replace(/\n$/, '').split('\n');
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end))
    end += 1;
  const same = (texts) => texts.map((text) => ({ kind: 'same', text }));
  const lines = [
    ...same(old.slice(0, start)),
    ...pairUp(middle(old.slice(start, old.length - end), now.slice(start, now.length - end))),
    ...same(old.slice(old.length - end)),
  ];
  let oldLine = 0;
  let newLine = 0;
  for (const line of lines) {
    if (line.kind !== 'come') line.old = oldLine += 1;
    if (line.kind !== 'gone') line.new = newLine += 1;
  }
  return lines;
}
