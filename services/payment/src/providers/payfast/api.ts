import { urlBelow } from '@rollcall/platform/outbound/base-url.ts';
import { type Static, Type } from 'typebox';
import { type CallResult, type Calls, call } from '../call.ts';
import type { PayFastSettings } from './settings.ts';
import { apiSignature, encodeFields, type Field } from './signature.ts';

/** PayFast's times are those of South Africa, which has no summer time. */
const OFFSET_MS = 2 * 60 * 60 * 1000;
/** A list of 1000 rows. */
const LIMIT_BYTES = 4 * 1024 * 1024;

interface PayFastCall {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Below the base; its variable parts are encoded. */
  readonly path: string;
  readonly query?: readonly Field[];
  readonly body?: readonly Field[];
}

/** Calls PayFast's API, signed. Amounts of the API are cents. */
export type PayFastApi = (question: PayFastCall) => Promise<CallResult>;

export function createPayFastApi(settings: PayFastSettings, calls: Calls): PayFastApi {
  return ({ method, path, query = [], body = [] }) => {
    const headers: Field[] = [
      ['merchant-id', settings.merchantId],
      ['version', 'v1'],
      ['timestamp', southAfricanTime(calls.clock.now())],
    ];
    const signature = apiSignature([...headers, ...query, ...body], settings.passphrase);
    const url = urlBelow(settings.apiUrl, path);
    // `testing` is no part of the signature.
    url.search = encodeFields(settings.isTest ? [...query, ['testing', 'true']] : query);
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    return call(calls, {
      method,
      url,
      headers: { ...Object.fromEntries(headers), signature, ...(body.length === 0 ? {} : form) },
      ...(body.length === 0 ? {} : { body: encodeFields(body) }),
      limitBytes: LIMIT_BYTES,
    });
  };
}

/** Pure. Such as `2026-11-20T12:00:01+02:00`. */
export function southAfricanTime(at: Date): string {
  return `${new Date(at.getTime() + OFFSET_MS).toISOString().slice(0, 19)}+02:00`;
}

/** An id as PayFast writes it: text, or a number. */
const Id = Type.Union([Type.String({ maxLength: 255 }), Type.Integer()]);

/** The form of every answer but lists. `response` is a boolean, the text of one, a number or more. */
export const Envelope = Type.Object({
  status: Type.String(),
  data: Type.Object({
    response: Type.Unknown(),
    message: Type.Optional(Type.Unknown()),
    pf_payment_id: Type.Optional(Id),
  }),
});

/** `GET /process/query/{id}`: a card transaction, its amount in cents. */
export const CardTransaction = Type.Object({
  status: Type.Literal('success'),
  data: Type.Object({
    response: Type.Object({
      pf_payment_id: Id,
      m_payment_id: Type.Optional(Type.Union([Id, Type.Null()])),
      status: Type.String(),
      amount: Type.Integer(),
    }),
  }),
});

/** `GET /subscriptions/{token}/fetch`, of what the token stands for. */
export const Token = Type.Object({ data: Type.Object({ response: Type.Object({ status_text: Type.String() }) }) });

/** Pure. Whether an answer says that it was done. */
export function isDone({ status, data }: Static<typeof Envelope>): boolean {
  return status === 'success' && (data.response === true || data.response === 'true');
}
