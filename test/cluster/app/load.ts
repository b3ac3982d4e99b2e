// A steady HTTP client in a pod: sends requests at an even rate over connections that it keeps alive, and counts what becomes of
// them. GET /report on port 8080 reports; see load-report.ts.
//
//   TARGET                   URL; or several requests that are sent in turn, as `POST URL` or `GET URL`, separated by commas
//   TOKEN                    bearer token of every request; empty: none
//   RATE                     requests a second, in all
//   CONNECTIONS              how many at once
//   REQUESTS_PER_CONNECTION  after these a connection is closed and another one made: a router sees nothing but new connections
import { Agent, createServer, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const PORT = 8080;
/** For a request that is lost; on a busy machine a good one can take seconds. */
const REQUEST_TIMEOUT_MS = 30_000;
const KEPT_REASONS = 50;

interface Target {
  readonly method: string;
  readonly url: string;
}

const targets = (process.env['TARGET'] ?? '').split(',').map((text): Target => {
  const [url = '', method = 'GET'] = text.trim().split(' ').toReversed();
  return { method, url };
});
const token = process.env['TOKEN'] ?? '';
const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
const rate = Number(process.env['RATE'] ?? 100);
const connections = Number(process.env['CONNECTIONS'] ?? 8);
const requestsPerConnection = Number(process.env['REQUESTS_PER_CONNECTION'] ?? 50);

interface Answers {
  count: number;
  firstAt: number;
  lastAt: number;
}

/** By what was answered; where several requests are sent, by these. */
const answers = new Map<string, Answers>();
/** By what went wrong. */
const failures = new Map<string, Answers>();
let failed = 0;

function countAnswer({ method, url }: Target, body: string): void {
  const key = targets.length === 1 ? body : `${method} ${new URL(url).pathname}`;
  count(answers, key);
}

function countFailure(reason: string): void {
  failed += 1;
  count(failures, failures.size < KEPT_REASONS || failures.has(reason) ? reason : 'others');
}

function count(counts: Map<string, Answers>, key: string): void {
  const now = Date.now();
  const known = counts.get(key);
  if (known === undefined) counts.set(key, { count: 1, firstAt: now, lastAt: now });
  else {
    known.count += 1;
    known.lastAt = now;
  }
}

function send(target: Target, agent: Agent): Promise<void> {
  const { method, url } = target;
  return new Promise((resolve) => {
    const sent = request(url, { method, headers, agent, timeout: REQUEST_TIMEOUT_MS }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (body += chunk));
      response.on('error', (err) => finish(() => countFailure(`answer: ${err.message}`)));
      response.on('end', () => {
        const { statusCode = 0 } = response;
        finish(() => (statusCode === 200 ? countAnswer(target, body) : countFailure(`${statusCode} from ${body}`)));
      });
    });
    let finished = false;
    const finish = (count: () => void): void => {
      if (finished) return;
      finished = true;
      count();
      resolve();
    };
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.on('error', (err) =>
      finish(() => countFailure(`${sent.reusedSocket ? 'kept' : 'new'} connection: ${err.message}`)),
    );
    sent.end();
  });
}

let turn = 0;

function nextTarget(): Target {
  turn += 1;
  return targets[turn % targets.length] ?? { method: 'GET', url: '' };
}

/** One connection after the other, one request at a time. */
async function sendSteadily(startDelayMs: number): Promise<void> {
  const intervalMs = (1000 * connections) / rate;
  await delay(startDelayMs);
  let due = performance.now();
  while (true) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let sent = 0; sent < requestsPerConnection; sent += 1) {
      await send(nextTarget(), agent);
      due = Math.max(due + intervalMs, performance.now() - intervalMs);
      await delay(Math.max(0, due - performance.now()));
    }
    agent.destroy();
  }
}

for (let index = 0; index < connections; index += 1) void sendSteadily((index * 1000) / rate);

createServer((_request, response) => {
  const report = {
    at: Date.now(),
    failed,
    failures: Object.fromEntries(failures),
    answers: Object.fromEntries(answers),
  };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(report));
}).listen(PORT);

process.once('SIGTERM', () => process.exit(0));
