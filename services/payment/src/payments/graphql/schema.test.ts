import { readFile } from 'node:fs/promises';
import { shapesOfArguments, shapesOfSchema, shapesOfType } from '@rollcall/platform/graphql/testing/shapes.ts';
import { expect, test } from 'vitest';
import { PaymentsAnswer, PaymentsQuery } from '../listing.ts';
import { NewPayment, PaymentWithEvents } from '../routes/schemas.ts';

const sdl = await readFile(new URL('schema.graphql', import.meta.url), 'utf8');
const key = { isRequired: false, isList: false, members: undefined };

test('a payment has all that it has over REST', () => {
  expect(shapesOfType(sdl, 'Payment')).toEqual(shapesOfSchema(PaymentWithEvents));
});

test('a payment is made of what it is made of over REST', () => {
  expect(shapesOfType(sdl, 'CreatePaymentInput')).toEqual({ ...shapesOfSchema(NewPayment), idempotencyKey: key });
});

test('payments are found by what they are found by over REST', () => {
  expect(shapesOfArguments(sdl, 'payments')).toEqual(shapesOfSchema(PaymentsQuery));
  const members = Object.keys(shapesOfSchema(PaymentsAnswer));
  expect(Object.keys(shapesOfType(sdl, 'PaymentPage')).sort()).toEqual(members.sort());
});
