// Adding a server: a program that is started here, or an address.
import { h, put, replace, uniqueId } from '../lib/dom.js';
import { send } from '../lib/api.js';
import { readSnippet, words } from '../lib/command-line.js';
import { learnServer } from '../lib/loads.js';
import { go } from '../lib/router.js';
import { plain, said } from '../lib/text.js';
import { icon } from '../parts/icons.js';
import { problemBox, tell } from '../parts/notes.js';
import { pairsField } from '../parts/pairs.js';

const DEADLINE_MS = 60_000;
const SECRET_HINT = 'Secrets can be references: ${VARIABLE}, keyring:NAME or cmd:COMMAND.';

const SCOPES = [
  ['user', 'You, everywhere'],
  ['local', 'You, in this directory'],
  ['project', 'Everybody who works on this project'],
];
const TRANSPORTS = [
  ['', 'Found out by itself'],
  ['http', 'Streamable HTTP'],
  ['sse', 'HTTP+SSE (old)'],
  ['ws', 'WebSocket'],
];

function field(label, control, hint, { isRequired = false } = {}) {
  const id = uniqueId('add');
  put(control, 'id', id);
  if (hint) put(control, 'aria-describedby', `${id}-hint`);
  if (isRequired) control.required = true;
  return h(
    'div',
    { class: 'field' },
    h(
      'div',
      { class: 'field-head' },
      h(
        'label',
        { class: 'field-name', for: id },
        label,
        isRequired && h('span', { class: 'needed' }, ' required'),
      ),
    ),
    control,
    hint && h('p', { id: `${id}-hint`, class: 'field-hint' }, hint),
  );
}

const input = (name, attributes) =>
  h('input', {
    class: 'input',
    name,
    type: 'text',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    ...attributes,
  });
const choice = (name, options) =>
  h(
    'select',
    { class: 'input', name },
    options.map(([value, label]) => h('option', { value }, label)),
  );

class AddForm {
  constructor() {
    this.kind = 'program';
    this.name = input('name', { placeholder: 'files' });
    this.command = input('command', {
      class: 'input mono',
      placeholder: 'npx -y @modelcontextprotocol/server-filesystem .',
    });
    this.parts = h('p', { class: 'command-parts', 'aria-live': 'polite' });
    this.cwd = input('cwd', { class: 'input mono' });
    this.env = pairsField('Environment', 'variable', {
      namePlaceholder: 'NAME',
      valuePlaceholder: 'value',
      hint: SECRET_HINT,
    });
    this.url = input('url', {
      class: 'input mono',
      type: 'url',
      placeholder: 'https://example.com/mcp',
      inputmode: 'url',
    });
    this.transport = choice('transport', TRANSPORTS);
    this.headers = pairsField('Headers', 'header', {
      namePlaceholder: 'Authorization',
      valuePlaceholder: 'Bearer ${keyring:example}',
      hint: SECRET_HINT,
    });
    this.description = input('description');
    this.scope = choice('scope', SCOPES);
    this.trouble = h('div', { class: 'trouble' });
    this.press = h(
      'button',
      { type: 'submit', class: 'button primary' },
      icon('plus'),
      h('span', null, 'Add server'),
    );
    this.node = this.build();
    this.command.addEventListener('input', () => this.showParts());
    this.choose('program');
  }

  build() {
    this.kinds = new Map(
      [
        ['program', 'Program'],
        ['address', 'Address'],
      ].map(([kind, label]) => [
        kind,
        h(
          'button',
          { type: 'button', class: 'segment', on: { click: () => this.choose(kind) } },
          icon(kind === 'program' ? 'terminal' : 'open'),
          label,
        ),
      ]),
    );
    this.program = h(
      'div',
      { class: 'fields' },
      field('Command', this.command, 'With its arguments, as you would type it. No shell is involved.', {
        isRequired: true,
      }),
      this.parts,
      this.env.node,
      h(
        'details',
        { class: 'quiet-details' },
        h('summary', null, 'More'),
        field('Directory', this.cwd, 'Where it is started; unless given, that of the gateway.'),
      ),
    );
    this.address = h(
      'div',
      { class: 'fields' },
      field('URL', this.url, null, { isRequired: true }),
      this.headers.node,
      h(
        'details',
        { class: 'quiet-details' },
        h('summary', null, 'More'),
        field('Transport', this.transport),
      ),
    );
    const form = h(
      'form',
      { class: 'card add-form', novalidate: true },
      h('div', { class: 'segments', role: 'group', 'aria-label': 'What the server is' }, [
        ...this.kinds.values(),
      ]),
      field('Name', this.name, 'Short, without spaces: clients see tools as mcp__NAME__TOOL.', {
        isRequired: true,
      }),
      this.program,
      this.address,
      field('Description', this.description, 'Models see it when they search for tools.'),
      field('For whom', this.scope, 'Which file it is written to.'),
      this.trouble,
      h(
        'div',
        { class: 'actions end' },
        h('a', { class: 'button', href: '#/servers' }, 'Cancel'),
        this.press,
      ),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.submit();
    });
    return h('div', { class: 'add' }, form, this.snippet());
  }

  /** Whoever has a snippet from some page does not have to take it apart. */
  snippet() {
    const area = h('textarea', {
      class: 'input mono',
      rows: '7',
      spellcheck: 'false',
      'aria-label': 'Snippet',
      placeholder: '{\n  "mcpServers": {\n    "files": { "command": "npx", "args": ["…"] }\n  }\n}',
    });
    const outcome = h('p', { class: 'field-hint', role: 'status' });
    area.addEventListener('input', () => {
      const found = readSnippet(area.value);
      outcome.textContent = found
        ? 'Taken over into the form. Look through it before you add it.'
        : area.value.trim() === ''
          ? ''
          : 'This is not the JSON of a server yet.';
      if (found) this.fill(found);
    });
    return h(
      'aside',
      { class: 'card snippet', 'aria-label': 'Paste a snippet' },
      h('h2', null, 'Have a snippet?'),
      h('p', { class: 'faint' }, 'Paste the JSON from a README, and the form is filled in.'),
      area,
      outcome,
    );
  }

  choose(kind) {
    this.kind = kind;
    this.program.hidden = kind !== 'program';
    this.address.hidden = kind !== 'address';
    for (const [name, press] of this.kinds) put(press, 'aria-pressed', String(name === kind));
  }

  fill({ name, transport, url, command, args, env, headers, cwd }) {
    this.choose(url === undefined ? 'program' : 'address');
    if (name) this.name.value = name;
    this.url.value = url ?? '';
    this.transport.value = transport ?? '';
    this.command.value =
      command === undefined
        ? ''
        : [command, ...args]
            .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
            .join(' ');
    this.env.write(env);
    this.headers.write(headers);
    this.cwd.value = cwd;
    this.showParts();
  }

  showParts() {
    const found = words(this.command.value);
    replace(
      this.parts,
      found === null
        ? h('span', { class: 'problem' }, 'A quote is not closed.')
        : found.length > 1 &&
            found.map((word, index) =>
              h('code', { class: index === 0 ? 'program-word' : null }, plain(word, 200) || '""'),
            ),
    );
  }

  /** What is sent, or null after saying what is missing. */
  body() {
    const isProgram = this.kind === 'program';
    const needed = [this.name, isProgram ? this.command : this.url];
    const missing = needed.find((control) => control.value.trim() === '');
    for (const control of needed) put(control, 'aria-invalid', control === missing ? 'true' : null);
    const found = words(this.command.value);
    const wrong = missing ?? (isProgram && found === null ? this.command : null);
    if (wrong) {
      replace(
        this.trouble,
        problemBox({
          message: missing ? 'Something that is needed is empty.' : 'A quote in the command is not closed.',
          hints: [],
        }),
      );
      wrong.focus();
      return null;
    }
    const text = (control) => control.value.trim() || undefined;
    const common = { name: text(this.name), scope: this.scope.value, description: text(this.description) };
    if (isProgram)
      return {
        ...common,
        command: found[0],
        args: found.slice(1),
        env: this.env.read(),
        cwd: text(this.cwd),
      };
    return { ...common, url: text(this.url), headers: this.headers.read(), transport: text(this.transport) };
  }

  async submit() {
    replace(this.trouble);
    const body = this.body();
    if (!body) return;
    this.press.disabled = true;
    try {
      const server = await send('servers', body, { deadline: DEADLINE_MS });
      learnServer(server);
      tell(h('span', null, said(server?.name ?? body.name, { class: 'strong' }), ' is added.'));
      go(['servers', server?.name ?? body.name]);
    } catch (problem) {
      replace(this.trouble, problemBox(problem));
      if (problem.status === 409) {
        put(this.name, 'aria-invalid', 'true');
        this.name.focus();
      }
    } finally {
      this.press.disabled = false;
    }
  }
}

function mount(outlet) {
  const form = new AddForm();
  replace(
    outlet,
    h(
      'div',
      { class: 'view-head' },
      h(
        'div',
        null,
        h('p', { class: 'crumbs' }, h('a', { href: '#/servers' }, 'Servers')),
        h('h1', { tabindex: '-1' }, 'Add a server'),
      ),
    ),
    form.node,
  );
}

export const addServerView = { nav: 'servers', title: () => 'Add a server', mount };
