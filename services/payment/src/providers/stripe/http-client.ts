import { ask, type HttpAnswer, type HttpQuestion } from '@rollcall/platform/outbound/exchange.ts';
import type { Stripe } from 'stripe';
import { Type } from 'typebox';
import { type Calls, readJson } from '../call.ts';

type HttpClient = NonNullable<Stripe.StripeConfig['httpClient']>;

const METHODS: ReadonlyMap<string, HttpQuestion['method']> = new Map([
  ['GET', 'GET'],
  ['POST', 'POST'],
  ['DELETE', 'DELETE'],
]);
const AnyObject = Type.Object({});
const ErrorObject = Type.Object({ error: Type.Object({}) });
/** A page of a list. */
const LIMIT_BYTES = 4 * 1024 * 1024;

/**
 * What Stripe's client makes its requests by: as every other provider is called, within one timeout
 * for the whole answer and up to so many bytes. The client's own has neither.
 */
export function createStripeHttpClient({ dispatcher, timeoutMs }: Calls): HttpClient {
  return {
    getClientName: () => 'undici',
    // The client's interface has eight.
    async makeRequest(...[host, port, path, verb, headers, body, protocol]) {
      const method = METHODS.get(verb.toUpperCase());
      if (method === undefined) throw new Error(`Stripe's client uses a method that is not expected: ${verb}`);
      const fields = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)] as const);
      const answer = await ask(
        dispatcher,
        {
          method,
          url: new URL(path, `${protocol}://${host}:${port}`),
          headers: Object.fromEntries(fields),
          ...(body === '' ? {} : { body }),
          timeoutMs,
          limitBytes: LIMIT_BYTES,
        },
        new AbortController().signal,
      );
      return {
        getStatusCode: () => answer.status,
        getHeaders: () => ({ ...answer.headers }),
        getRawResponse: () => ({}),
        toStream: () => {
          throw new Error('answers are not streamed');
        },
        toJSON: async () => objectIn(answer) ?? { error: { type: 'api_error', message: 'no object of Stripe' } },
      };
    },
  };
}

/**
 * Undefined for what is no object, or no error where the status says that it is one: the client goes
 * by the body alone, and would take it for what was asked for.
 */
function objectIn({ status, body, cut }: HttpAnswer): object | undefined {
  if (cut) return undefined;
  const value = readJson(status < 400 ? AnyObject : ErrorObject, body);
  return Array.isArray(value) ? undefined : value;
}
