import { readFile } from 'node:fs/promises';
import { type Static, type TObject, Type } from 'typebox';
import type { Dispatcher } from 'undici';
import { ask, type HttpAnswer } from '../outbound/exchange.ts';

const TIMEOUT_MS = 10_000;
const LIMIT_BYTES = 64 * 1024;

/** Settings of a service that is a client of the gateway. @param use what it is for. */
export const clientSettings = (use: string) => ({
  ROLLCALL_CLIENT_ID: Type.Optional(Type.String({ minLength: 1, description: use })),
  ROLLCALL_CLIENT_SECRET_FILE: Type.Optional(
    Type.String({ minLength: 1, description: 'With the secret of the client; needed with ROLLCALL_CLIENT_ID' }),
  ),
});

/** Of a service at the gateway. */
export interface ClientConfig {
  readonly id: string;
  /** Path. */
  readonly secretFile: string;
}

type Parsed = Static<TObject<ReturnType<typeof clientSettings>>>;

/** @returns undefined where there is none. @throws Error naming the variable that is missing. */
export function clientConfig(parsed: Parsed): ClientConfig | undefined {
  const { ROLLCALL_CLIENT_ID: id, ROLLCALL_CLIENT_SECRET_FILE: secretFile } = parsed;
  if (id === undefined) return undefined;
  if (secretFile === undefined)
    throw new Error('Invalid configuration:\n  ROLLCALL_CLIENT_SECRET_FILE is required with ROLLCALL_CLIENT_ID');
  return { id, secretFile };
}

/** Asks the token endpoint of the gateway. @throws NoAnswerError. */
export type AskForToken = (form: Readonly<Record<string, string>>) => Promise<HttpAnswer>;

/**
 * Reads the secret of a client, with which it asks for tokens.
 *
 * @param gateway a URL of the gateway, whatever its path.
 */
export async function tokenEndpoint(
  { id, secretFile }: ClientConfig,
  gateway: URL,
  dispatcher: Dispatcher,
): Promise<AskForToken> {
  const secret = (await readFile(secretFile, 'utf8')).trim();
  const basic = Buffer.from([id, secret].map(encodeURIComponent).join(':')).toString('base64');
  const headers = { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' };
  const question = { method: 'POST' as const, url: new URL('/api/v1/auth/token', gateway), headers };
  return (form) =>
    ask(
      dispatcher,
      { ...question, body: new URLSearchParams(form).toString(), timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES },
      new AbortController().signal,
    );
}
