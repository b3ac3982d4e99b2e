import type { Readable } from 'node:stream';
import type { GuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import { FetchError } from './errors.ts';
import type { AnswerHeaders } from './response-headers.ts';

const MAX_REDIRECTS = 5;

export interface Source {
  readonly url: URL;
  /** The header of that name; sent to the origin of the URL only. */
  readonly authorization: string | undefined;
}

export interface FollowOptions {
  /** Decides which addresses are connected to. */
  readonly agent: GuardedAgent;
  readonly headers: Readonly<Record<string, string>>;
  /** Longest wait for the head of an answer, and for each next piece of its body. */
  readonly idleTimeoutMs: number;
  readonly signal: AbortSignal;
}

/** The answer at the end of the redirects. Its body must be read to the end or destroyed. */
export interface Answer {
  readonly statusCode: number;
  readonly headers: AnswerHeaders;
  readonly body: Readable;
  /**
   * Who answered, for messages: of a redirect's target only the origin, for its path may be a
   * secret.
   */
  readonly displayUrl: string;
}

/** An https URL as it may be shown: without query, which often carries a signature. */
export function displayUrlOf(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

/**
 * Gets the URL and follows redirects to other https URLs. What authorises at the first origin is
 * not sent to another one, nor after that.
 *
 * @throws FetchError FAILED for too many redirects or senseless ones, ADDRESS_REFUSED for one to
 * anything but https; the agent's errors.
 */
export async function follow(source: Source, options: FollowOptions): Promise<Answer> {
  let { url, authorization } = source;
  for (let redirects = 0; ; redirects += 1) {
    const { statusCode, headers, body } = await options.agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'GET',
      headers: { ...options.headers, ...(authorization === undefined ? {} : { authorization }) },
      headersTimeout: options.idleTimeoutMs,
      bodyTimeout: options.idleTimeoutMs,
      signal: options.signal,
    });
    // An error that comes while nobody reads must not end the process; who reads gets it all the
    // same.
    body.on('error', () => undefined);
    const location = headers['location'];
    if (!isRedirect(statusCode) || typeof location !== 'string') {
      return { statusCode, headers, body, displayUrl: redirects === 0 ? displayUrlOf(url) : url.origin };
    }
    body.destroy();
    if (redirects === MAX_REDIRECTS) throw new FetchError('FAILED', `More than ${MAX_REDIRECTS} redirects`);
    const target = targetOf(location, url);
    if (target.origin !== url.origin) authorization = undefined;
    url = target;
  }
}

function isRedirect(statusCode: number): boolean {
  return [301, 302, 303, 307, 308].includes(statusCode);
}

function targetOf(location: string, from: URL): URL {
  const target = URL.parse(location, from);
  if (target === null) throw new FetchError('FAILED', `${from.origin} redirects to what is no URL`);
  if (target.protocol !== 'https:') {
    throw new FetchError(
      'ADDRESS_REFUSED',
      `${from.origin} redirects to a ${target.protocol} URL; only https is allowed`,
    );
  }
  // Credentials are read where the user put them, and from nowhere else.
  target.username = '';
  target.password = '';
  return target;
}
