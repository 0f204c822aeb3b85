// Decides whether a request may reach the MCP server: verifies access tokens of the authorization
// server, and proofs that the sender holds the key of a token that is bound to one.
import { createHash, randomBytes } from 'node:crypto';

import './installed.mjs';
import { SCOPES } from './authorization.mjs';

const { calculateJwkThumbprint, EmbeddedJWK, errors, jwtVerify } = await import('jose');

const METADATA_PATH = '/.well-known/oauth-protected-resource';
const PROOF_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'RS256', 'PS256'];
const PROOF_AGE_SECONDS = 300;

// Why a request is refused, and what its sender is told.
class Refusal extends Error {
  constructor(reason, challenge = {}) {
    super(reason);
    this.reason = reason;
    this.challenge = challenge;
  }
}

const invalid = (reason, description) =>
  new Refusal(reason, { error: 'invalid_token', error_description: description });

export class Guard {
  #proofs = new Set();
  #nonce = randomBytes(16).toString('base64url');

  constructor(authorization) {
    const { issuer, resource, settings, ledger } = authorization;
    Object.assign(this, { authorization, issuer, resource, settings, ledger });
    const { origin, pathname } = new URL(resource);
    this.metadataPath = METADATA_PATH + pathname;
    this.metadataUrl = origin + this.metadataPath;
  }

  metadata() {
    return {
      resource: this.resource,
      authorization_servers: [this.issuer],
      scopes_supported: SCOPES,
      bearer_methods_supported: ['header'],
      resource_name: 'Notes of the cocode tests',
      ...(this.settings.dpopRequired && {
        dpop_bound_access_tokens_required: true,
        dpop_signing_alg_values_supported: PROOF_ALGORITHMS,
      }),
    };
  }

  // Says who sent the request, or answers it and says nothing.
  async admit(request, response) {
    try {
      const sender = await this.#verify(request);
      this.ledger.count(['accepted']);
      return sender;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { reason, challenge } = error;
      this.ledger.count(['unauthorized', reason]);
      if (challenge.error === 'use_dpop_nonce') response.setHeader('dpop-nonce', this.#nonce);
      this.#refuse(response, 401, { ...challenge, scope: 'mcp:basic' });
      return undefined;
    }
  }

  // Whether the sender may use this scope; answers the request if not.
  permit(sender, scope, response) {
    if (sender.scopes.includes(scope)) return true;
    this.ledger.count(['forbidden', scope]);
    const description = `this needs ${scope}`;
    this.#refuse(response, 403, {
      error: 'insufficient_scope',
      error_description: description,
      scope,
    });
    return false;
  }

  #refuse(response, status, { dpop, ...parameters }) {
    const scheme = dpop || this.settings.dpopRequired ? 'DPoP' : 'Bearer';
    const all = {
      ...parameters,
      resource_metadata: this.metadataUrl,
      ...(scheme === 'DPoP' && { algs: PROOF_ALGORITHMS.join(' ') }),
    };
    const challenge = Object.entries(all).map(([name, value]) => `${name}="${value}"`);
    const { error = 'unauthorized', error_description } = parameters;
    response.writeHead(status, {
      'content-type': 'application/json',
      'www-authenticate': `${scheme} ${challenge.join(', ')}`,
    });
    response.end(JSON.stringify({ error, error_description }));
  }

  async #verify(request) {
    const [scheme, token] = (request.headers.authorization ?? '').split(' ');
    if (!token) throw new Refusal('missing');
    const claims = await this.#claims(token);
    const known = this.authorization.tokens.get(claims.jti);
    if (!known) throw invalid('unknown', 'the access token was not issued here');
    if (known.state === 'expired') throw invalid('expired', 'the access token expired');
    if (known.state === 'revoked') throw invalid('revoked', 'the access token was revoked');
    const bound = claims.cnf?.jkt;
    const wanted = bound ? 'dpop' : 'bearer';
    if (scheme.toLowerCase() !== wanted) {
      throw invalid('scheme', `this access token goes with ${wanted}`);
    }
    if (bound) await this.#prove(request, token, bound);
    else if (this.settings.dpopRequired) throw invalid('unbound', 'the token must be bound');
    const scopes = (claims.scope ?? '').split(' ').filter((scope) => scope !== '');
    return { token, clientId: claims.client_id, scopes, subject: claims.sub, bound: !!bound };
  }

  async #claims(token) {
    try {
      const { payload } = await jwtVerify(token, this.authorization.publicKey, {
        issuer: this.issuer,
        audience: this.resource,
        algorithms: ['ES256'],
        typ: 'at+jwt',
        requiredClaims: ['exp', 'jti'],
      });
      return payload;
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw invalid('expired', 'the access token expired');
      if (error instanceof errors.JWTClaimValidationFailed) {
        throw invalid(`claim_${error.claim}`, `the claim ${error.claim} is not right`);
      }
      throw invalid('malformed', 'this is no access token');
    }
  }

  async #prove(request, token, thumbprint) {
    const bad = (description, error = 'invalid_dpop_proof') =>
      new Refusal(error, { error, error_description: description, dpop: true });
    const proof = request.headers.dpop;
    if (!proof) throw bad('the proof is missing');
    let verified;
    try {
      verified = await jwtVerify(proof, EmbeddedJWK, {
        algorithms: PROOF_ALGORITHMS,
        typ: 'dpop+jwt',
        maxTokenAge: PROOF_AGE_SECONDS,
        requiredClaims: ['jti', 'htm', 'htu', 'ath'],
      });
    } catch (error) {
      throw bad(error.message.replaceAll('"', "'"));
    }
    const { payload, protectedHeader } = verified;
    if (payload.htm !== request.method) throw bad('htm is not the method');
    if (payload.htu !== this.resource) throw bad('htu is not this address');
    const hash = createHash('sha256').update(token).digest('base64url');
    if (payload.ath !== hash) throw bad('ath is of another token');
    if ((await calculateJwkThumbprint(protectedHeader.jwk)) !== thumbprint) {
      throw bad('the token is bound to another key');
    }
    if (this.settings.dpopNonce && payload.nonce !== this.#nonce) {
      throw bad('the proof needs a nonce', 'use_dpop_nonce');
    }
    if (this.#proofs.has(payload.jti)) throw bad('the proof was used before');
    this.#proofs.add(payload.jti);
  }
}
