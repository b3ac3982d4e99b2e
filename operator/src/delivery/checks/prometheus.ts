import type { PrometheusCheck, Threshold } from '@rollcall/crds/types.gen.ts';
import { ask, type HttpAnswer } from '@rollcall/platform/outbound/exchange.ts';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Dispatcher } from 'undici';
import type { Check, CheckResult } from './check.ts';

const TIMEOUT_MS = 10_000;
const LIMIT_BYTES = 1024 * 1024;
/** Of what Prometheus says of a query that it refuses. */
const QUOTE_LIMIT = 300;

/** A timestamp and the value in Prometheus' own notation of floats. */
const sampleSchema = Type.Tuple([Type.Number(), Type.String()]);
const answerSchema = Type.Union([
  Type.Object({
    status: Type.Literal('success'),
    data: Type.Union([
      Type.Object({ resultType: Type.Literal('scalar'), result: sampleSchema }),
      Type.Object({
        resultType: Type.Literal('vector'),
        result: Type.Array(Type.Object({ value: Type.Optional(sampleSchema) })),
      }),
      Type.Object({ resultType: Type.Union([Type.Literal('matrix'), Type.Literal('string')]) }),
    ]),
  }),
  Type.Object({ status: Type.Literal('error'), errorType: Type.Optional(Type.String()), error: Type.String() }),
]);

type Outcome = { readonly number: number } | { readonly fault: string };

/**
 * An instant query by Prometheus' HTTP API. It has to come to exactly one number, which then has to
 * lie within the threshold.
 */
export function createPrometheusCheck(dispatcher: Dispatcher): Check<PrometheusCheck> {
  return async ({ address, query, threshold }, _subject, signal) => {
    const question = {
      // By POST a query may be longer than a URL.
      method: 'POST',
      url: new URL(`${address.replace(/\/+$/, '')}/api/v1/query`),
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams({ query, timeout: `${TIMEOUT_MS / 1000}s` }).toString(),
      timeoutMs: TIMEOUT_MS,
      limitBytes: LIMIT_BYTES,
    } as const;
    const outcome = readAnswer(await ask(dispatcher, question, signal));
    return 'fault' in outcome ? { passed: false, message: outcome.fault } : compare(outcome.number, threshold);
  };
}

function readAnswer({ status, body, cut }: HttpAnswer): Outcome {
  if (cut) return { fault: `Prometheus answered with more than ${LIMIT_BYTES} bytes` };
  const answer = parseJson(body);
  if (!Value.Check(answerSchema, answer))
    return { fault: `Prometheus answered ${status} with something else than a result` };
  if (answer.status === 'error')
    return { fault: `Prometheus answered ${status}: ${answer.error.slice(0, QUOTE_LIMIT)}` };
  const { data } = answer;
  if (data.resultType === 'scalar') return numberFrom(data.result[1]);
  if (data.resultType !== 'vector') return { fault: `the query yields a ${data.resultType} instead of one number` };
  const [only, ...others] = data.result;
  if (only === undefined) return { fault: 'the query yields nothing' };
  if (others.length > 0) return { fault: `the query yields ${data.result.length} numbers instead of one` };
  return only.value === undefined
    ? { fault: 'the query yields a histogram instead of a number' }
    : numberFrom(only.value[1]);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function numberFrom(text: string): Outcome {
  const number = text.endsWith('Inf') ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text);
  return Number.isNaN(number) || text.trim() === '' ? { fault: 'the query yields NaN' } : { number };
}

function compare(number: number, { min, max }: Threshold): CheckResult {
  if (min !== undefined && number < min) return { passed: false, message: `the result ${number} is below ${min}` };
  if (max !== undefined && number > max) return { passed: false, message: `the result ${number} is above ${max}` };
  return { passed: true, message: `the result is ${number}` };
}
