import { errorFromAnswer, RegistryError } from './registry-error.ts';
import type { ApiRequest, Transport } from './transport.ts';
import { signWebhook } from './webhook-signature.ts';

/** @public */
export interface CallOptions {
  /** Gives the call up; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** @public */
export interface WebhookOptions extends CallOptions {
  /** The service's webhook secret: the call is signed with it. */
  readonly secret?: string | undefined;
}

/** A request that reads. */
export function get(path: string, signal: AbortSignal | undefined): ApiRequest {
  return { method: 'GET', path, repeatable: true, signal };
}

/**
 * Not repeatable unless the caller says so: a webhook done twice may be two jobs or two messages.
 */
export function post(path: string, body: unknown): ApiRequest {
  return { method: 'POST', path, body: JSON.stringify(body), repeatable: false };
}

/**
 * The request, signed anew at every attempt where there is a secret to sign with: one that was lost
 * has used its signature up.
 */
export function signed(request: ApiRequest, { secret, signal }: WebhookOptions): ApiRequest {
  if (secret === undefined) return { ...request, signal };
  const { body = '' } = request;
  const path = `/api/v1${request.path}`;
  return { ...request, signal, sign: () => signWebhook(secret, { path, body, at: new Date() }) };
}

/**
 * Sends the request and reads the answer's JSON object.
 *
 * @throws RegistryError for any other answer, and for none.
 */
export async function json<Answer extends object>(transport: Transport, request: ApiRequest): Promise<Answer> {
  const { status, text, server } = await transport.send(request);
  if (status < 200 || status >= 300) throw errorFromAnswer(status, text, server);
  try {
    const body: Answer = JSON.parse(text);
    if (isObject(body)) return body;
  } catch {
    // Reported as below: whoever answered, it was not a registry.
  }
  const message = `${server} did not answer with a JSON object: is it a registry?`;
  throw new RegistryError(message, { status, error: 'Unexpected answer', server });
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

/**
 * Names that a URL cannot hold as one path segment would reach another endpoint: refuse them as the
 * registry does.
 */
export function serviceSegment(name: string): string {
  if (!isSegment(name)) {
    throw new RegistryError(`'${name}' is not a service name`, { status: 400, error: 'Invalid service name' });
  }
  return encodeURIComponent(name);
}

/** The same for the id of a job. */
export function jobSegment(jobId: string): string {
  if (!isSegment(jobId)) throw new RegistryError(`'${jobId}' is not a job id`, { status: 404, error: 'Job not found' });
  return encodeURIComponent(jobId);
}

function isSegment(text: string): boolean {
  return text !== '' && text !== '.' && text !== '..';
}

/**
 * The query string of those parameters that have a value, with its question mark; empty where none
 * has.
 */
export function query(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) search.set(name, String(value));
  return search.size === 0 ? '' : `?${search.toString()}`;
}
