// One tool: what it says of itself, a form for its arguments, and what came of calling it.
import { button, h, put, replace, write } from '../lib/dom.js';
import { milliseconds, percent, plural } from '../lib/format.js';
import { draftOf, keepDraft, runOf, startRun } from '../lib/runs.js';
import { state, watch } from '../lib/store.js';
import { codeBlock, plain, said, withoutColours } from '../lib/text.js';
import { placeOf } from '../lib/router.js';
import { toolResult } from '../parts/content.js';
import { schemaForm } from '../parts/form.js';
import { icon } from '../parts/icons.js';
import { announce, problemBox } from '../parts/notes.js';
import { callBadge } from '../parts/states.js';

const CLOCK_MS = 100;

/** What is said of a call that is not made yet. */
const WAITING =
  'It is made as soon as one of the calls that this browser has under way is over. Some of them may wait for you in the inbox.';
const NEAR_END = 24;

const HINTS = [
  ['readOnlyHint', 'reads only', 'good'],
  ['destructiveHint', 'may destroy', 'bad'],
  ['idempotentHint', 'can be repeated', ''],
  ['openWorldHint', 'reaches outside', ''],
];

function tags(tool) {
  const given = tool.annotations ?? {};
  const found = HINTS.filter(
    ([key]) => given[key] === true && !(key === 'destructiveHint' && given.readOnlyHint === true),
  ).map(([, words, tone]) => h('span', { class: `tag ${tone}`.trim() }, words));
  if (tool.verdict === 'ask') found.push(h('span', { class: 'tag warn' }, 'rules want asking'));
  if (tool.verdict === 'deny') found.push(h('span', { class: 'tag bad' }, 'denied by rules'));
  return found;
}

function logLine(log) {
  const text =
    typeof log?.data === 'string'
      ? log.data
      : typeof log?.text === 'string'
        ? log.text
        : JSON.stringify(log?.data ?? log);
  return h(
    'li',
    null,
    log?.level && h('b', null, plain(log.level, 20)),
    ' ',
    said(withoutColours(text), { limit: 400 }),
  );
}

/** How a call goes and what came of it. */
function outcome(run, server) {
  const badge = callBadge(run.state);
  const time = h('span', { class: 'run-time' });
  const stop = button('Cancel', { icon: icon('stop'), kind: 'small', on: { click: () => run.cancel() } });
  const bar = h('progress', { class: 'run-bar', 'aria-label': 'Progress' });
  const words = h('p', { class: 'run-words' });
  const question = h('p', { class: 'box warn', hidden: true });
  let asked = null;
  const showQuestion = () => {
    const own = state.elicitations.filter((one) => one.server === server);
    const kind = run.state !== 'running' || own.length === 0 ? null : (own[0].kind ?? 'elicitation');
    if (kind === asked) return;
    asked = kind;
    question.hidden = kind === null;
    const [picture, words, link] =
      kind === 'consent'
        ? ['shield', 'A rule wants somebody to allow this call. ', 'Look at it in the inbox']
        : ['message', 'The server asks you something. ', 'Answer it in the inbox'];
    replace(question, icon(picture), h('span', null, words, h('a', { href: '#/inbox' }, link)));
  };
  const logs = h('ul', { class: 'run-logs', hidden: true });
  const result = h('div');
  const node = h(
    'section',
    { class: 'run', 'aria-label': 'Outcome' },
    h('div', { class: 'run-head' }, h('h3', null, 'Outcome'), badge.node, time, stop),
    bar,
    words,
    question,
    logs,
    result,
  );
  let isShown = false;
  let logged = 0;
  const showLogs = () => {
    const isAtEnd = logs.scrollHeight - logs.scrollTop - logs.clientHeight < NEAR_END;
    logs.hidden = run.logs.length === 0;
    // Only what has come since, of what is still kept; as much goes at the other end.
    const fresh = Math.min(run.logCount - logged, run.logs.length);
    if (fresh === 0) return;
    logs.append(...run.logs.slice(-fresh).map(logLine));
    logged = run.logCount;
    while (logs.children.length > run.logs.length) logs.firstElementChild.remove();
    if (isAtEnd) logs.scrollTop = logs.scrollHeight;
  };
  const showProgress = () => {
    const { progress, total, message } = run.progress ?? {};
    const isRunning = run.state === 'running';
    bar.hidden = !isRunning;
    if (run.state === 'waiting') {
      write(words, WAITING);
      return;
    }
    if (typeof progress === 'number' && total > 0) {
      put(bar, 'max', total);
      bar.value = progress;
    } else {
      bar.removeAttribute('value');
    }
    const share =
      typeof progress === 'number' ? (total > 0 ? percent(progress, total) : String(progress)) : null;
    write(words, isRunning ? [share, message && plain(message, 200)].filter(Boolean).join(' · ') : '');
  };
  const update = () => {
    badge.update(run.state);
    put(node, 'data-state', run.state);
    stop.hidden = run.isOver;
    showProgress();
    showQuestion();
    showLogs();
    if (!run.isOver || isShown) return;
    isShown = true;
    clock();
    announce(`The call is over: ${badge.node.textContent}`);
    if (run.problem) replace(result, problemBox(run.problem));
    else if (run.result) replace(result, toolResult(run.result));
  };
  const clock = () => write(time, milliseconds(run.milliseconds ?? Date.now() - run.startedAt));
  return { node, update, clock };
}

const announceStart = (run) =>
  announce(run.state === 'waiting' ? 'The call waits for its turn.' : 'The call is running.');

export function showTool(outlet, { server, tool, signal }) {
  const place = h('div');
  const form = schemaForm(tool.inputSchema, { initial: draftOf(server, tool.name) });
  const press = h(
    'button',
    { type: 'submit', class: 'button primary' },
    icon('play'),
    h('span', null, 'Run'),
    h('kbd', { 'aria-hidden': 'true' }, 'Ctrl ⏎'),
  );
  const isDenied = tool.verdict === 'deny';
  const isRisky = tool.annotations?.destructiveHint === true && tool.annotations?.readOnlyHint !== true;
  let shown = null;
  let watching = null;

  const show = (run) => {
    watching?.abort();
    watching = new AbortController();
    const { signal: watched } = watching;
    shown = outcome(run, server);
    replace(place, shown.node);
    const update = () => {
      shown.update();
      press.disabled = isDenied || !run.isOver;
    };
    run.addEventListener('change', update, { signal: watched });
    watch(['elicitations'], update, watched);
    update();
    shown.clock();
  };
  const submit = () => {
    if (press.disabled) return;
    const args = form.read();
    if (args === null) return;
    keepDraft(server, tool.name, args);
    const run = startRun(server, tool.name, args);
    show(run);
    run.addEventListener('change', () => announceStart(run), { once: true });
  };
  const element = h(
    'form',
    { class: 'try', novalidate: true },
    form.node,
    isDenied &&
      h(
        'p',
        { class: 'box bad' },
        icon('ban'),
        h('span', null, 'A rule denies this tool, so it cannot be called.'),
      ),
    isRisky &&
      !isDenied &&
      h(
        'p',
        { class: 'box warn' },
        icon('warning'),
        h('span', null, 'The tool says that it may destroy something. It is called for real.'),
      ),
    h('div', { class: 'actions' }, press),
  );
  press.disabled = isDenied;
  element.addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
  element.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    submit();
  });
  const last = runOf(server, tool.name);
  if (last) show(last);
  const timer = setInterval(() => shown?.clock(), CLOCK_MS);
  signal.addEventListener(
    'abort',
    () => {
      clearInterval(timer);
      watching?.abort();
    },
    { once: true },
  );
  replace(
    outlet,
    h('a', { class: 'back', href: placeOf(['servers', server, 'tools']) }, 'All tools'),
    h(
      'div',
      { class: 'tool-head' },
      h('h2', { tabindex: '-1', class: 'mono' }, plain(tool.name, 120)),
      h('span', { class: 'tag' }, plural(tool.tokens, 'token')),
      tags(tool),
    ),
    tool.title && said(tool.title, { tag: 'p', class: 'strong', limit: 200 }),
    tool.description
      ? said(tool.description, { tag: 'p', class: 'tool-words', limit: 1_200 })
      : h('p', { class: 'faint' }, 'The server says nothing about it.'),
    tool.qualifiedName &&
      h(
        'p',
        { class: 'faint small' },
        'Known to clients as ',
        said(tool.qualifiedName, { class: 'mono', limit: 200 }),
      ),
    element,
    place,
    h(
      'details',
      { class: 'quiet-details' },
      h('summary', null, 'Definition as JSON'),
      codeBlock(
        { inputSchema: tool.inputSchema, outputSchema: tool.outputSchema, annotations: tool.annotations },
        { 'aria-label': 'Definition' },
      ),
    ),
  );
}
