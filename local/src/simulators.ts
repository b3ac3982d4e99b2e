import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { SimulatorSettings } from '@rollcall/simulators/settings.ts';
import { freePorts } from './ports.ts';
import type { ManagedProcess } from './processes.ts';
import { type ServiceContext, startService } from './services.ts';
import { type Supervised, supervise } from './supervisor.ts';
import { waitUntil } from './wait.ts';

const READY_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 3_000;
const PROBE_TIMEOUT_MS = 2_000;

/** Where simulators of providers will listen, and the credentials of their clients, new ones each time. */
export type PlannedSimulators = Awaited<ReturnType<typeof planSimulators>>;

/**
 * Chooses ports on 127.0.0.1, credentials, and where each one's notifications go.
 *
 * @param gateway its base URL, by which notifications come.
 */
export async function planSimulators(gateway: string) {
  const [twilio = 0, payfast = 0, bulksms = 0, clickatell = 0, ...others] = await freePorts(8);
  const [sendgrid = 0, yoco = 0, fcm = 0, stripe = 0] = others;
  const urls = {
    twilio: urlAt(twilio),
    payfast: urlAt(payfast),
    bulksms: urlAt(bulksms),
    clickatell: urlAt(clickatell),
    sendgrid: urlAt(sendgrid),
    yoco: urlAt(yoco),
    fcm: urlAt(fcm),
    stripe: urlAt(stripe),
  };
  const messages = `${gateway}/api/v1/communication/notifications`;
  const payments = `${gateway}/api/v1/payment/notifications`;
  /** Of those that sign nothing: the adapters of both know it. */
  const notificationToken = secret();
  const settings = {
    twilio: {
      port: twilio,
      accountSid: `AC${randomBytes(16).toString('hex')}`,
      authToken: secret(),
      webhookUrl: `${messages}/twilio`,
    },
    payfast: { port: payfast, merchant: { id: '10000100', key: '46f0cd694581a', passphrase: secret() } },
    bulksms: {
      port: bulksms,
      tokenId: secret(),
      tokenSecret: secret(),
      webhookUrl: `${messages}/bulksms?token=${notificationToken}`,
    },
    clickatell: {
      port: clickatell,
      apiKey: secret(),
      callbackUrl: `${messages}/clickatell?token=${notificationToken}`,
    },
    sendgrid: {
      port: sendgrid,
      apiKey: `SG.${secret()}`,
      privateKey: generateKeyPairSync('ec', { namedCurve: 'P-256', ...PEM }).privateKey,
      eventWebhookUrl: `${messages}/sendgrid`,
    },
    yoco: {
      port: yoco,
      // Of a test key it refunds nothing.
      secretKey: `sk_live_${secret()}`,
      webhook: { url: `${payments}/yoco`, secret: webhookSecret() },
    },
    fcm: {
      port: fcm,
      projectId: 'rollcall-local',
      privateKey: generateKeyPairSync('rsa', { modulusLength: 2048, ...PEM }).privateKey,
    },
    stripe: {
      port: stripe,
      secretKey: `sk_test_${secret()}`,
      webhook: { url: `${payments}/stripe`, secret: webhookSecret() },
    },
  } satisfies SimulatorSettings;
  return { urls, settings, notificationToken };
}

const PEM = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const;

function secret(): string {
  return randomBytes(24).toString('hex');
}

function webhookSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`;
}

function urlAt(port: number): string {
  return `http://127.0.0.1:${port}`;
}

export interface SimulatorsOptions {
  readonly planned: PlannedSimulators;
  /** Where the file of the settings is written. */
  readonly settingsFile: string;
  readonly context: ServiceContext;
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Starts the simulators in one process, and again when it ends. Everything but what goes to them
 * works without: whatever goes wrong is told, and no failure.
 *
 * @returns undefined where they do not start.
 * @throws the signal's reason when it was aborted.
 */
export async function startSimulators(options: SimulatorsOptions): Promise<Supervised | undefined> {
  const { planned, settingsFile, context, log, signal } = options;
  const { PATH, NODE_COMPILE_CACHE } = context.env;
  const plain = { ...context, env: { PATH, NODE_COMPILE_CACHE } };
  const service = { name: 'simulators', script: 'simulators/src/main.ts', args: ['--settings', settingsFile] };
  await writeFile(settingsFile, JSON.stringify(planned.settings), { mode: 0o600 });
  try {
    const supervised = await supervise({
      name: 'process of the simulators',
      start: () => startService(service, plain),
      ready: (started) => untilAllAnswer(Object.values(planned.urls), started, signal),
      log,
      graceMs: STOP_GRACE_MS,
    });
    supervised.failed.catch((err: unknown) => log(`There are no simulators any more. ${errorMessage(err)}`));
    return supervised;
  } catch (err) {
    signal.throwIfAborted();
    log(`There will be no simulators of providers. ${errorMessage(err)}`);
    return undefined;
  }
}

async function untilAllAnswer(urls: readonly string[], { failed }: ManagedProcess, signal: AbortSignal): Promise<void> {
  const allAnswer = async () => (await Promise.all(urls.map(answers))).every(Boolean);
  await waitUntil('the simulators answer', allAnswer, { timeoutMs: READY_TIMEOUT_MS, signal, failed });
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/_control/requests`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
