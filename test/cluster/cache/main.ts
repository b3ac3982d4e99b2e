// `npm run e2e:cache`: puts what tests on a cluster need into the cache, so that they find it
// there: Kubernetes and Traefik, the packages of the node, and the images of the databases and of
// Rollcall itself.
import { prepareNode } from '../support/cluster.ts';
import { ensureGoBuilds } from './go-builds.ts';

const options = { env: process.env, log: console.log };
await prepareNode(options);
await ensureGoBuilds(options);
