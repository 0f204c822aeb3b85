// Lets the scripts of this directory import packages that `cargo xtask peers` installed somewhere
// else. Import it first, and the packages with `await import(…)`.
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const here = import.meta.dirname;
const peers = process.env.COCODE_PEERS ?? join(here, '../../target/peers');
const installation = join(peers, 'oauth');
if (!existsSync(join(installation, 'node_modules'))) {
  throw new Error(`${installation} is missing: run \`cargo xtask peers\``);
}
const ours = pathToFileURL(here).href;
const theirs = pathToFileURL(join(installation, 'package.json')).href;

registerHooks({
  resolve(specifier, context, next) {
    const bare = !/^(\.|\/|node:|file:)/.test(specifier);
    const fromHere = context.parentURL?.startsWith(`${ours}/`);
    return next(specifier, bare && fromHere ? { ...context, parentURL: theirs } : context);
  },
});
