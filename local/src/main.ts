// `npm start`: everything Rollcall needs and Rollcall itself on this machine, until Ctrl-C.
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { cacheDirectory } from './cache-directory.ts';
import { tryLock } from './file-lock.ts';
import { defaultCacheDirectory, findKubernetesBinaries } from './kubernetes-binaries.ts';
import { findMailpit } from './mailpit.ts';
import { findRedisBinary } from './redis-binary.ts';
import { endpointsFile, type Rollcall, startRollcall } from './rollcall.ts';
import { REPOSITORY } from './services.ts';

const directory = join(REPOSITORY, '.local');
const log = (line: string): void => console.error(line);
/**
 * A terminal, npm and a process manager may each pass on the same request: this long after the
 * first it is still that one.
 */
const SAME_REQUEST_MS = 1_500;

// Whoever read our output may be gone before we are: there is still much to stop.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

process.exitCode = await main();

async function main(): Promise<number> {
  const stop = stopOnSignals();
  await mkdir(directory, { recursive: true });
  const attempt = await tryLock(join(directory, 'lock'));
  if ('heldBy' in attempt) {
    log(`Rollcall is already running from this folder (process ${attempt.heldBy}).`);
    return 1;
  }
  await using held = new AsyncDisposableStack();
  held.use(attempt.lock);
  // Left by a run that was killed: it must not pass for this one's, whose binaries may need
  // minutes to build.
  await rm(endpointsFile(directory), { force: true });
  return await run(stop);
}

async function run(stop: AbortSignal): Promise<number> {
  const started = performance.now();
  try {
    const places = {
      assetsDirectory: process.env['KUBEBUILDER_ASSETS'],
      cacheDirectory: defaultCacheDirectory(process.env),
      log,
      signal: stop,
    };
    const binaries = await findKubernetesBinaries(
      ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl', 'kwok'],
      places,
    );
    const redisBinary = await findRedisBinary({
      redisServer: process.env['REDIS_SERVER'],
      cacheDirectory: cacheDirectory(process.env, 'redis'),
      log,
      signal: stop,
    });
    const mailpit = await findMailpit(places);
    if ('problem' in mailpit) log(`There will be no mail server. ${mailpit.problem}`);
    const parts = { binaries, redisBinary, mailpitFile: 'file' in mailpit ? mailpit.file : undefined };
    await using rollcall = await startRollcall({ directory, ...parts, env: inheritedEnvironment(), log, signal: stop });
    console.log(summary(rollcall, Math.round(performance.now() - started) / 1000));
    if (!stop.aborted) await Promise.race([once(stop, 'abort'), rollcall.failed]);
    log('Stopping');
    return 0;
  } catch (err) {
    if (stop.aborted) return 0;
    log(errorMessage(err));
    return 1;
  }
}

/**
 * Aborts at the first signal. Another, later one ends the process at once; the kernel then ends
 * what it has started.
 */
function stopOnSignals(): AbortSignal {
  const controller = new AbortController();
  let firstAt = Number.POSITIVE_INFINITY;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (performance.now() - firstAt > SAME_REQUEST_MS) process.exit(1);
      firstAt = Math.min(firstAt, performance.now());
      controller.abort();
    });
  }
  return controller.signal;
}

/**
 * What the services see of ours: where programs are, and settings of Rollcall such as
 * ROLLCALL_LOG_LEVEL.
 */
function inheritedEnvironment(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => /^(PATH|HOME|TZ|ROLLCALL_.*)$/.test(name));
  return Object.fromEntries(inherited);
}

function summary(rollcall: Rollcall, seconds: number): string {
  const { registry, gateway, gatewayGrpc, client, controlPlane, postgres, samples, kubectl, logDirectory } = rollcall;
  const { mailpit, communication, payment, federation, simulators } = rollcall;
  const api = `${registry}/api/v1`;
  const [victim] = samples;
  return `
Rollcall is running, ready after ${seconds.toFixed(1)} s. Ctrl-C stops it and everything below.

  registry       ${api}
  gateway        ${gateway}/api, gRPC at ${gatewayGrpc}
  communication  ${communication}/api/v1
  payment        ${payment}/api/v1
  federation     ${federation}/api
  Kubernetes     ${controlPlane.server}
  kubeconfig     ${controlPlane.kubeconfigPath}
  PostgreSQL     127.0.0.1:${postgres.port}
  mail           ${mailpit === undefined ? 'none, see above' : `SMTP at 127.0.0.1:${mailpit.smtpPort}, read at ${mailpit.url}/api/v1/messages`}
  simulators     ${simulators === undefined ? 'none, see above' : lines(Object.entries(simulators).map(([name, url]) => `${name} ${url}`))}
  samples        ${lines(samples.map(({ name, url, pid }) => `${name} ${url} (process ${pid})`))}
  logs           ${logDirectory}
  webhooks       deploys need no signature of services without a secret (ROLLCALL_WEBHOOK_ALLOW_UNSIGNED)

Try, in another terminal:

  export KUBECONFIG=${controlPlane.kubeconfigPath} PATH=${dirname(kubectl)}:$PATH
  kubectl get serviceregistrations
  kubectl get sreg --watch
  curl -s ${api}/services
  curl -s -H 'content-type: application/json' \\
       -d '{"service_name":"shop","service_url":"http://127.0.0.1:8080"}' ${api}/services/register
  curl -s -X POST ${api}/services/shop/heartbeat
  curl -s -u ${client.id}:${client.secret} -d grant_type=client_credentials ${gateway}/api/v1/auth/token
  curl -s -H "Authorization: Bearer $TOKEN" ${gateway}/api/v1/lms/courses     # TOKEN being the access_token
  curl -s -H "Authorization: Bearer $TOKEN" -H 'content-type: application/json' \\
       -d '{"to":"ada@example.com","subject":"Hello","text":"A mail"}' ${gateway}/api/v1/communication/emails
  curl -s -H "Authorization: Bearer $TOKEN" -H 'content-type: application/json' \\
       -d '{"amount":14950,"currency":"ZAR","provider":"sandbox","customerEmail":"ada@example.com","itemName":"Tea"}' \\
       ${gateway}/api/v1/payment/payments     # then open its paymentUrl
  curl -s -H "Authorization: Bearer $TOKEN" -H 'content-type: application/json' \\
       -d '{"query":"{ users { name } payments { payments { id status } } }"}' ${gateway}/api/graphql     # or in a browser: ${gateway}/api/graphiql
  kill -9 ${victim?.pid ?? ''}     # ${victim?.name ?? ''} expires 60 s after its last heartbeat
`;
}

/** Below one another, in the second column. */
function lines(texts: readonly string[]): string {
  return texts.join(`\n${' '.repeat(17)}`);
}
