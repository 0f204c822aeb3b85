// The pages that a user sees at the authorization server: login, consent, and errors.
import querystring from 'node:querystring';

export const USER = { name: 'alice', password: 'wonderland' };

const BODY_LIMIT = 16 * 1024;

const escape = (text) =>
  String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

function page(title, body) {
  return `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>${escape(title)}</title></head>
<body><h1>${escape(title)}</h1>
${body}
</body></html>
`;
}

export function errorPage(details) {
  const lines = Object.entries(details)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `<p>${escape(name)}: ${escape(value)}</p>`);
  return page('Something went wrong', lines.join('\n'));
}

function loginPage(uid, message) {
  return page(
    'Sign in',
    `<p>${escape(message)}</p>
<form method="post" action="/interaction/${escape(uid)}">
<label>User <input type="text" name="user" autofocus></label>
<label>Password <input type="password" name="password"></label>
<button type="submit">Sign in</button>
</form>`,
  );
}

function consentPage(uid, client, params) {
  const scopes = (params.scope ?? '').split(' ').map((scope) => `<li>${escape(scope)}</li>`);
  return page(
    'Allow access?',
    `<p>${escape(client?.clientName ?? params.client_id)} asks for access to ${escape(params.resource)}:</p>
<ul>${scopes.join('')}</ul>
<form method="post" action="/interaction/${escape(uid)}">
<button type="submit" name="decision" value="allow">Allow</button>
<button type="submit" name="decision" value="deny">Deny</button>
</form>`,
  );
}

function send(response, html) {
  response.writeHead(200, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'",
  });
  response.end(html);
}

async function readForm(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_LIMIT) throw new Error('the form is too large');
    chunks.push(chunk);
  }
  return querystring.parse(Buffer.concat(chunks).toString());
}

// What the user of `interaction` may have, now that consent was given.
async function grant(provider, { grantId, session, params, prompt }) {
  const granted = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) granted.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    granted.addResourceScope(resource, scopes.join(' '));
  }
  return { consent: { grantId: await granted.save() } };
}

// Serves /interaction/UID: shows the page that is due, or takes what was sent from it.
export async function serveInteraction(provider, settings, request, response) {
  const interaction = await provider.interactionDetails(request, response);
  const { uid, prompt, params } = interaction;
  const finish = (result) =>
    provider.interactionFinished(request, response, result, {
      mergeWithLastSubmission: prompt.name === 'consent',
    });
  const signIn = () => finish({ login: { accountId: USER.name } });
  const allow = async () => finish(await grant(provider, interaction));
  const deny = () =>
    finish({ error: 'access_denied', error_description: 'the user said no' });

  if (settings.consent === 'deny') return deny();
  if (settings.consent === 'auto') return prompt.name === 'login' ? signIn() : allow();
  if (request.method !== 'POST') {
    const client = await provider.Client.find(params.client_id);
    return send(
      response,
      prompt.name === 'login' ? loginPage(uid, 'Who are you?') : consentPage(uid, client, params),
    );
  }
  const form = await readForm(request);
  if (prompt.name === 'login') {
    const known = form.user === USER.name && form.password === USER.password;
    return known ? signIn() : send(response, loginPage(uid, 'That is not right. Try again.'));
  }
  return form.decision === 'allow' ? allow() : deny();
}
