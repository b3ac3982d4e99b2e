import { errorMessage } from '@rollcall/platform/errors.ts';
import { AddressRefusedError } from '@rollcall/platform/outbound/address-rules.ts';
import { type BackoffOptions, backoffMs, sleep } from '@rollcall/platform/retry.ts';
import { FetchError } from './errors.ts';
import { type Answer, type FollowOptions, follow, type Source } from './follow.ts';
import type { PartialFile } from './partial-file.ts';
import {
  parseContentLength,
  parseContentRange,
  parseRetryAfterMs,
  strongEtagOf,
  validatorOf,
} from './response-headers.ts';

const RETRY_AFTER_MAX_MS = 60_000;

export interface DownloadOptions extends Omit<FollowOptions, 'headers'> {
  readonly source: Source;
  readonly maxBytes: number;
  /** How often the server is asked, at most. */
  readonly attempts: number;
  readonly backoff: BackoffOptions;
  /** Past every cache on the way. */
  readonly fresh: boolean;
  /** Reports what went wrong before it is tried again. */
  readonly report: (line: string) => void;
}

/** Trying again may help. */
class TransientError extends Error {
  readonly retryAfterMs: number;

  constructor(message: string, options: ErrorOptions & { readonly retryAfterMs?: number } = {}) {
    super(message, options);
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }
}

/**
 * Downloads the source into the empty partial file. A download that breaks goes on where it broke,
 * if the server says that it still has the same file; else it starts over.
 *
 * @throws FetchError FAILED, ADDRESS_REFUSED, TOO_LARGE; the reason of the signal.
 */
export async function download(partial: PartialFile, options: DownloadOptions): Promise<void> {
  const { attempts, backoff, signal, report } = options;
  let validator: string | undefined;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await receive(partial, options, { validator, keepValidator: (next) => void (validator = next) });
      return;
    } catch (error) {
      const fault = faultOf(error, signal);
      if (!(fault instanceof TransientError)) throw fault;
      if (attempt >= attempts) {
        throw new FetchError('FAILED', `${fault.message} (attempt ${attempt} of ${attempts})`, { cause: error });
      }
      const waitMs = Math.max(backoffMs(attempt - 1, backoff), Math.min(fault.retryAfterMs, RETRY_AFTER_MAX_MS));
      report(`${fault.message}; trying again in ${(waitMs / 1000).toFixed(1)} s (attempt ${attempt} of ${attempts})`);
      await sleep(waitMs, signal);
      signal.throwIfAborted();
    }
  }
}

interface Resumption {
  /**
   * Names the file that the partial one is the beginning of; undefined: it is not known how to ask
   * for the rest.
   */
  readonly validator: string | undefined;
  readonly keepValidator: (validator: string | undefined) => void;
}

/** One attempt. @throws TransientError, FetchError, what undici throws. */
async function receive(partial: PartialFile, options: DownloadOptions, resumption: Resumption): Promise<void> {
  const { validator, keepValidator } = resumption;
  const resume = partial.size > 0 && validator !== undefined;
  const answer = await follow(options.source, {
    ...options,
    headers: {
      accept: '*/*',
      // The checksum is that of the file as it is.
      'accept-encoding': 'identity',
      'user-agent': 'rollcall-fetch',
      ...(options.fresh ? { 'cache-control': 'no-cache' } : {}),
      ...(resume ? { range: `bytes=${partial.size}-`, 'if-range': validator } : {}),
    },
  });
  try {
    if (answer.statusCode === 416 || answer.statusCode === 206) keepValidator(undefined);
    checkStatus(answer);
    if (answer.statusCode === 206) checkContinuation(answer, resume ? partial.size : undefined, validator);
    else await partial.startOver();
    keepValidator(validatorOf(answer.headers) ?? (answer.statusCode === 206 ? validator : undefined));
    await store(partial, answer, options.maxBytes);
  } finally {
    answer.body.destroy();
  }
}

function checkStatus({ statusCode, headers, displayUrl }: Answer): void {
  if (statusCode === 200 || statusCode === 206) return;
  const message = `${displayUrl} answered ${statusCode}`;
  if (statusCode === 408 || statusCode === 416 || statusCode === 429 || statusCode >= 500) {
    const retryAfterMs = parseRetryAfterMs(headers['retry-after'], new Date()) ?? 0;
    throw new TransientError(message, { retryAfterMs });
  }
  throw new FetchError('FAILED', message);
}

/**
 * A part is accepted only if it is the rest of the same file: else the next attempt, without
 * validator, asks for all of it.
 */
function checkContinuation(
  { headers, displayUrl }: Answer,
  offset: number | undefined,
  validator: string | undefined,
): void {
  const range = parseContentRange(headers['content-range']);
  const etag = strongEtagOf(headers);
  const same = etag === undefined || validator?.startsWith('"') !== true || etag === validator;
  if (offset === undefined || range?.start !== offset || !same) {
    throw new TransientError(`${displayUrl} sent another part than the one asked for`);
  }
}

async function store(
  partial: PartialFile,
  { statusCode, headers, body, displayUrl }: Answer,
  maxBytes: number,
): Promise<void> {
  const length = parseContentLength(headers['content-length']);
  const announced =
    (statusCode === 206 ? parseContentRange(headers['content-range'])?.total : undefined) ??
    (length === undefined ? undefined : partial.size + length);
  if (announced !== undefined && announced > maxBytes) {
    throw new FetchError('TOO_LARGE', `${displayUrl} has ${announced} bytes, more than the ${maxBytes} allowed`);
  }
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) throw new TypeError('The body is no bytes');
    if (partial.size + chunk.length > maxBytes) {
      throw new FetchError('TOO_LARGE', `${displayUrl} has more than the ${maxBytes} bytes allowed`);
    }
    await partial.append(chunk);
  }
  if (announced !== undefined && partial.size !== announced) {
    throw new TransientError(`${displayUrl} sent ${partial.size} of ${announced} bytes`);
  }
}

/** What ended an attempt, as it is reported: no URL is in it. */
function faultOf(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof AddressRefusedError) return new FetchError('ADDRESS_REFUSED', error.message, { cause: error });
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (error instanceof FetchError || error instanceof TransientError || code === undefined) return error;
  const message = `The connection failed: ${errorMessage(error)}`;
  if (isCertificateFault(code)) return new FetchError('FAILED', message, { cause: error });
  return new TransientError(message, { cause: error });
}

/**
 * Codes of OpenSSL's verification and of Node's check of the host: the next attempt would find the
 * same certificate.
 */
function isCertificateFault(code: string): boolean {
  return /CERT|SIGNATURE|HOSTNAME_MISMATCH|^INVALID_(CA|PURPOSE)$|^ERR_TLS_CERT/.test(code);
}
