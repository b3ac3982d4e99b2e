// Started by informer.test.ts: follows a namespace, stops, and prints what is left. It ends only if
// nothing is.
import { systemClock } from '@rollcall/platform/clock.ts';
import { leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { connectByFile } from '@rollcall/platform/kube/connection.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';

const [kubeconfig = '', namespace = ''] = process.argv.slice(2);
const connection = await connectByFile(kubeconfig, { clock: systemClock, requestTimeoutMs: 30_000, maxSockets: 2 });
const log = createLogger('follow', 'silent');
const informer = createInformer({ connection, kind: leaseKind, namespace, clock: systemClock, log, resyncMs: 1000 });
informer.start();
await informer.synced;
while (informer.connectivity() !== 'connected') await sleep(10);
const startedAt = performance.now();
await informer.stop();
await connection.close();
const afterStopMs = performance.now() - startedAt;
// Closed sockets are taken off the books in the next turns of the event loop.
await new Promise((resolve) => void setImmediate(() => setImmediate(resolve)));
const left = process.getActiveResourcesInfo().filter((name) => /timeout|socket|tls|tcp|getaddrinfo/i.test(name));
process.stdout.write(`${JSON.stringify({ objects: informer.store.size, afterStopMs, left })}\n`);
