// The program that the tests deploy, in every version. Its settings come with the image, and may be overridden in the pod.
//
//   APP_VERSION     what it answers, so that a client sees who served it
//   APP_FAULT       crash: ends at once; unready: never becomes ready; errors: is ready and answers 500
//   READY_DELAY_MS  how long after its start it becomes ready
import { createServer } from 'node:http';

const PORT = 8080;
/** Longer than any client's pause, so that it is never us who close a connection that is about to be used. */
const KEEP_ALIVE_MS = 95_000;
/** In a drain every answer closes its connection; what is idle after this time is closed without one. */
const DRAIN_MS = 10_000;

const version = process.env['APP_VERSION'] ?? 'none';
const fault = process.env['APP_FAULT'] ?? '';
const readyAt = performance.now() + Number(process.env['READY_DELAY_MS'] ?? 0);
let requests = 0;
let draining = false;

if (fault === 'crash') {
  console.error(`${version} cannot run`);
  process.exit(1);
}

const isReady = (): boolean => fault !== 'unready' && !draining && performance.now() >= readyAt;

const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
  if (draining) response.setHeader('connection', 'close');
  if (request.url === '/healthz') {
    response.writeHead(isReady() ? 200 : 503).end();
    return;
  }
  if (request.url === '/count') {
    response.end(String(requests));
    return;
  }
  requests += 1;
  response.writeHead(fault === 'errors' ? 500 : 200, { 'content-type': 'text/plain' }).end(version);
});

server.listen(PORT);

process.once('SIGTERM', () => {
  draining = true;
  // Still accepting for a moment: a router may not have heard yet that this pod is going.
  setTimeout(() => server.close(() => process.exit(0)), DRAIN_MS).unref();
  const timer = setInterval(() => {
    server.getConnections((err, count) => {
      if (err === null && count > 0) return;
      clearInterval(timer);
      server.close(() => process.exit(0));
    });
  }, 100);
});
