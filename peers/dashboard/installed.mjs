// The packages that `cargo xtask peers` installed for the scripts of this directory.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const peers = process.env.COCODE_PEERS ?? join(import.meta.dirname, '../../target/peers');
const installation = join(peers, 'dashboard');
if (!existsSync(join(installation, 'node_modules'))) {
  throw new Error(`${installation} is missing: run \`cargo xtask peers\``);
}

/** Loads a package of the installation, whichever directory the script is in. */
export const installed = createRequire(join(installation, 'package.json'));
