// Builds Traefik into the cache unless it is there, so that the tests on a cluster find it.
import { findTraefik } from './binary.ts';

const found = await findTraefik({ env: process.env, log: console.log });
console.log('problem' in found ? `No Traefik: ${found.problem}` : `Traefik: ${found.file}`);
