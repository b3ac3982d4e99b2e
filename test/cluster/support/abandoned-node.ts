// Started by node.test.ts, which kills it: starts a node, prints where it is, and waits.

import { startNode } from '../node/node.ts';
import { findNodeParts } from './cluster.ts';

const log = (line: string): void => console.error(line);
const node = await startNode({ ...(await findNodeParts({ env: process.env, log })), log });
console.log(JSON.stringify({ pid: node.pid, directory: node.directory, ...node.addresses }));
// Keeps the process alive until it is killed.
setInterval(() => undefined, 60_000);
