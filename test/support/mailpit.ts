import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { defaultCacheDirectory } from '@rollcall/local/kubernetes-binaries.ts';
import { findMailpit, type Mailpit, startMailpit } from '@rollcall/local/mailpit.ts';
import { inject } from 'vitest';

/** For `beforeAll`: the first run on a machine builds Mailpit. */
export const MAILPIT_TIMEOUT_MS = 600_000;

interface Mailbox {
  readonly Name: string;
  readonly Address: string;
}

/** What Mailpit says of a mail that it has. */
interface ReceivedMail {
  /** Mailpit's own. */
  readonly ID: string;
  /** The header `Message-ID`, without its brackets. */
  readonly MessageID: string;
  readonly From: Mailbox;
  readonly To: readonly Mailbox[];
  readonly Cc: readonly Mailbox[] | null;
  /** Recipients of the envelope that no header names. */
  readonly Bcc: readonly Mailbox[] | null;
  readonly Subject: string;
}

/** How often a command of SMTP is refused, and with which code. */
interface Refusal {
  /** 400 to 599. */
  readonly ErrorCode: number;
  /** In percent, 1 to 100. */
  readonly Probability: number;
}

/** What Mailpit refuses: `Sender` at MAIL FROM, `Recipient` at RCPT TO. */
interface Chaos {
  readonly Sender?: Refusal;
  readonly Recipient?: Refusal;
}

/** A mail server of one test file's own. */
export interface TestMailpit extends Mailpit {
  /** All that it has, the newest first. */
  messages(): Promise<readonly ReceivedMail[]>;
  /**
   * @param id Mailpit's own.
   * @returns the mail as it came, behind `Return-Path`, `Received` and, for recipients that no
   * header names, a `Bcc` that Mailpit puts before it.
   */
  raw(id: string): Promise<string>;
  /** Replaces what was said before; without anything, nothing is refused. */
  chaos(refusals?: Chaos): Promise<void>;
}

/**
 * Starts a Mailpit, which is built first where it is not in the cache. Disposing of it stops it.
 *
 * @throws where it cannot be built, and says why.
 */
export async function createMailpit(): Promise<TestMailpit> {
  const found = await findMailpit({
    assetsDirectory: process.env['KUBEBUILDER_ASSETS'],
    cacheDirectory: defaultCacheDirectory(process.env),
    log: (line) => console.error(line),
  });
  if ('problem' in found) throw new Error(found.problem);
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'mailpit-'));
  const mailpit = await startMailpit({ directory, file: found.file });
  const api = `${mailpit.url}/api/v1`;
  return Object.assign(mailpit, {
    async messages() {
      const { messages } = JSON.parse(await call(`${api}/messages?limit=${MOST}`)) as { messages: ReceivedMail[] };
      return messages;
    },
    raw: (id: string) => call(`${api}/message/${id}/raw`),
    async chaos(refusals: Chaos = {}) {
      await call(`${api}/chaos`, { method: 'PUT', body: JSON.stringify(refusals) });
    },
    async [Symbol.asyncDispose]() {
      await mailpit.stop();
      await rm(directory, { recursive: true });
    },
  });
}

/** More than any test sends. */
const MOST = 1_000_000;

async function call(url: string, init: RequestInit = {}): Promise<string> {
  const response = await fetch(url, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} was answered ${response.status}: ${text}`);
  return text;
}
