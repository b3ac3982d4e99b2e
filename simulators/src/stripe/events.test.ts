import { expect, test } from 'vitest';
import { signatureOf } from './events.ts';

test('an event is signed as npm stripe 23.1.0 and PyPI stripe 16.1.0 did', () => {
  const body =
    '{"id":"evt_1","object":"event","type":"checkout.session.completed","data":{"object":{"id":"cs_test_1","object":"checkout.session","payment_status":"paid"}}}';
  expect(signatureOf('whsec_test_secret', 1_795_168_800, body)).toBe(
    't=1795168800,v1=3dd55e1b1fecceaf4149a4c275d13e2d68df9ac8beacbb389cde045563ea95c8',
  );
});
