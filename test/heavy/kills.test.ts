import { expect, test } from 'vitest';
import { killMessaging } from '../communication/message-kills.ts';
import { killPayment } from '../payment/payment-kills.ts';

const ROUNDS = 100;

test('a hundred kills under load leave each message sent once, or unknown', async () => {
  expect(await killMessaging(ROUNDS)).toEqual([]);
}, 3_600_000);

test('a hundred kills under load leave each payment charged once at most, and the books true', async () => {
  expect(await killPayment(ROUNDS)).toEqual([]);
}, 3_600_000);
