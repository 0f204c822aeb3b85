// The prompts of a server: filled in, and looked at as a model would get them.
import { h, replace } from '../lib/dom.js';
import { path, sendLong } from '../lib/api.js';
import { plain, said } from '../lib/text.js';
import { promptResult } from '../parts/content.js';
import { icon } from '../parts/icons.js';
import { loading, problemBox } from '../parts/notes.js';
import { showOffers } from '../parts/offers.js';

const MAX_SHOWN = 200;
const MAX_ARGUMENTS = 40;

function line(name, prompt) {
  const place = h('div');
  const inputs = (Array.isArray(prompt.arguments) ? prompt.arguments : [])
    .slice(0, MAX_ARGUMENTS)
    .map((argument) => ({
      argument,
      input: h('input', {
        class: 'input',
        autocomplete: 'off',
        spellcheck: 'false',
        required: argument?.required === true,
      }),
    }));
  const form = h(
    'form',
    { class: 'stack' },
    inputs.map(({ argument, input }) =>
      h(
        'label',
        { class: 'field' },
        h(
          'span',
          { class: 'field-name' },
          plain(argument?.title ?? argument?.name, 80),
          argument?.required === true && h('span', { class: 'needed' }, ' required'),
        ),
        input,
        argument?.description && said(argument.description, { class: 'field-hint', limit: 300 }),
      ),
    ),
    h(
      'div',
      { class: 'actions' },
      h('button', { type: 'submit', class: 'button' }, icon('play'), h('span', null, 'Get prompt')),
    ),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const values = Object.create(null);
    for (const { argument, input } of inputs) if (input.value !== '') values[argument.name] = input.value;
    replace(place, loading('Asking'));
    try {
      const wish = { name: prompt.name, arguments: values };
      const onWait = () => replace(place, loading('Waiting until a call of this browser is over'));
      const { result } = await sendLong('call', path('servers', name, 'prompt'), wish, { onWait });
      replace(place, promptResult(result));
    } catch (problem) {
      replace(place, problemBox(problem));
    }
  });
  return h(
    'li',
    { class: 'item' },
    icon('message'),
    h(
      'details',
      { class: 'grow' },
      h(
        'summary',
        null,
        said(prompt.title ?? prompt.name, { class: 'strong', limit: 160 }),
        prompt.description && said(prompt.description, { class: 'faint', limit: 300 }),
      ),
      form,
      place,
    ),
  );
}

export function showPrompts(panel, context) {
  showOffers(panel, context, {
    kind: 'prompts',
    picture: 'message',
    nothing: 'No prompts',
    show(answer) {
      const prompts = Array.isArray(answer?.prompts) ? answer.prompts.slice(0, MAX_SHOWN) : [];
      if (prompts.length === 0) return null;
      return h(
        'ul',
        { class: 'items card' },
        prompts.map((prompt) => line(context.name, prompt)),
      );
    },
  });
}
