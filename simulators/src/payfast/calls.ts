import type { FastifyRequest } from 'fastify';
import { formOf, jsonOf } from '../bodies.ts';
import type { Merchant } from './order.ts';
import { type Field, signCall } from './signatures.ts';

export type PayfastMode = 'sandbox' | 'live';

/** A call of the API that may not be made so. */
export interface Refusal {
  readonly code: number;
  readonly message: string;
}

const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:[+-]\d{2}:\d{2})?$/;

/**
 * What is wrong with a call before it is looked at: its headers, its signature, the account that it
 * is for. The words are those of PayFast's reference.
 */
export function callFault(request: FastifyRequest, merchant: Merchant, mode: PayfastMode): Refusal | undefined {
  const { headers, method } = request;
  const given = (name: string): string => String(headers[name] ?? '');
  const hasLength = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
  if (!hasLength && method === 'PUT') return { code: 411, message: 'Length required' };
  if (given('merchant-id') === '' || given('version') === '' || !TIMESTAMP.test(given('timestamp')))
    return { code: 400, message: 'Required variables not present in request' };
  if (given('version') !== 'v1') return { code: 400, message: 'API version is not valid' };
  if (given('signature') === '') return { code: 400, message: 'Signature not present in headers' };
  if (!/^[0-9a-f]{32}$/.test(given('signature')))
    return { code: 400, message: 'Value for signature is not in the expected format' };
  const isTesting = queryOf(request).get('testing') === 'true';
  if (given('merchant-id') !== merchant.id || isTesting !== (mode === 'sandbox'))
    return { code: 401, message: 'Merchant not found' };
  const body = bodyFields(request);
  if (body === undefined) return { code: 400, message: 'Required variables not present in request' };
  const signed: readonly Field[] = [
    ...['merchant-id', 'version', 'timestamp'].map((name) => [name, given(name)] as const),
    ...queryOf(request),
    ...body,
  ];
  if (signCall(signed, merchant.passphrase) !== given('signature'))
    return { code: 401, message: 'Merchant authorisation failed' };
  return undefined;
}

export function queryOf({ url }: Pick<FastifyRequest, 'url'>): URLSearchParams {
  const queryAt = url.indexOf('?');
  return new URLSearchParams(queryAt === -1 ? '' : url.slice(queryAt + 1));
}

/**
 * The values of a form, or of a JSON object of one level; undefined where the body is neither. Of
 * JSON, true and false are signed as 1 and 0, as PHP's `http_build_query` writes them.
 */
export function bodyFields({ body, headers }: FastifyRequest): readonly Field[] | undefined {
  if (!Buffer.isBuffer(body) || body.length === 0) return [];
  if (headers['content-type']?.startsWith('application/json') !== true) {
    const form = formOf(body);
    return form === undefined ? undefined : [...form];
  }
  const value = jsonOf(body);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value).map(([name, member]: [string, unknown]) => [name, scalar(member)] as const);
  return entries.every((entry): entry is Field => entry[1] !== undefined) ? entries : undefined;
}

function scalar(value: unknown): string | undefined {
  if (typeof value === 'boolean') return value ? '1' : '0';
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  return value === null ? '' : undefined;
}
