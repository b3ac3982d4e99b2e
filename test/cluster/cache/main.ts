// `npm run e2e:cache`: builds Kubernetes and Traefik into the cache, so that tests find them there.
import { ensureGoBuilds } from './go-builds.ts';

await ensureGoBuilds({ env: process.env, log: console.log });
